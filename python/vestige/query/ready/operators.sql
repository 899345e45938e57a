-- a framework's operators by their own time, over all processes
-- rows = 20: how many of them
select count(*) as calls,
       cast(sum(self_ns) as bigint) as self_ns,
       cast(sum(case when (flags & 128) = 0 then duration_ns else 0 end) as bigint) as total_ns,
       cast(max(duration_ns) as bigint) as longest_ns,
       cast(sum(self_bytes) as bigint) as self_bytes,
       count(distinct process) as processes,
       name
from op
group by name
order by self_ns desc, name
limit :rows
