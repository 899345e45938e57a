-- a framework's operators by time, over all processes
-- rows = 20: how many of them
select count(*) as calls,
       cast(sum(duration_ns) as bigint) as total_ns,
       cast(max(duration_ns) as bigint) as longest_ns,
       cast(sum(duration_ns) as bigint) / count(*) as mean_ns,
       count(distinct process) as processes,
       name
from op
group by name
order by total_ns desc, name
limit :rows
