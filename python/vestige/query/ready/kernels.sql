-- what devices did (kernels, copies, sets) by its time, over all processes
-- rows = 20: how many of them
select count(*) as times,
       cast(sum(duration_ns) as bigint) as total_ns,
       cast(max(duration_ns) as bigint) as longest_ns,
       cast(sum(bytes) as bigint) as bytes,
       count(distinct process) as processes,
       kind, name
from activity
where kind in ('kernel', 'copy', 'set')
group by kind, name
order by total_ns desc, name
limit :rows
