-- functions by the bytes they allocated, and what was never freed
-- rows = 20: how many of them
select cast(round(sum(size * weight)) as bigint) as bytes,
       cast(round(sum(weight)) as bigint) as allocations,
       cast(round(sum(case when freed_ns is null then size * weight else 0 end)) as bigint) as not_freed_bytes,
       max(size) as largest_bytes,
       count(distinct process) as processes,
       framework,  -- its blocks lie in those of the system's allocator
       coalesce(name, '(not in Python)') as name
from alloc
group by framework, coalesce(name, '(not in Python)')
order by bytes desc, 7, framework
limit :rows
