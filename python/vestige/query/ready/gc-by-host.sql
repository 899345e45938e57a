-- garbage collections of each host, and their share of the time
with gc as (
    select process, count(*) as collections, sum(duration_ns) as gc_ns, max(duration_ns) as longest_ns
    from span
    where kind = 'gc'
    group by process
)
select process.host,
       count(*) as processes,
       cast(coalesce(sum(gc.collections), 0) as bigint) as collections,
       cast(coalesce(sum(gc.gc_ns), 0) as bigint) as gc_ns,
       cast(coalesce(max(gc.longest_ns), 0) as bigint) as longest_ns,
       1e2 * coalesce(sum(gc.gc_ns), 0) / nullif(sum(process.end_ns - process.start_ns), 0) as percent
from process left join gc on gc.process = process.process
group by process.host
order by gc_ns desc, process.host
