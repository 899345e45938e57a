-- functions by their own time, over all processes
-- rows = 20: how many of them
with one as (
    select name, process, count(*) as calls, sum(self_ns) as self_ns, max(duration_ns) as longest_ns,
           sum(case when (flags & 128) = 0 then duration_ns else 0 end) as total_ns  -- recursive calls are in the outermost
    from span
    group by name, process
)
select cast(sum(calls) as bigint) as calls,
       cast(sum(self_ns) as bigint) as self_ns,
       1e2 * sum(self_ns) / nullif((select sum(self_ns) from one), 0) as self_percent,
       cast(sum(total_ns) as bigint) as total_ns,
       cast(max(longest_ns) as bigint) as longest_ns,
       count(*) as processes,
       name
from one
group by name
order by 2 desc, name
limit :rows
