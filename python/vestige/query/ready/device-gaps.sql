-- the longest stretches in which a device had nothing to do on any stream, and what ended each
-- rows = 20: how many of them
with work as (
    select process, device, start_ns, name, launch_start_ns, op_name, annotation_name,
           max(start_ns + duration_ns) over (
               partition by process, device order by start_ns, start_ns + duration_ns, stream
               rows between unbounded preceding and 1 preceding
           ) as idle_from_ns
    from activity
    where kind in ('kernel', 'copy', 'set')
)
select cast(work.start_ns - work.idle_from_ns as bigint) as idle_ns,
       cast(case when work.launch_start_ns is not null
                 then greatest(least(work.launch_start_ns, work.start_ns) - work.idle_from_ns, 0)
            end as bigint) as until_launch_ns,
       work.idle_from_ns, process.rank, device.platform, device.ordinal,
       work.name as next_name, work.op_name, work.annotation_name
from work
join process on process.process = work.process
left join device on device.process = work.process and device.device = work.device
where work.start_ns > work.idle_from_ns
order by idle_ns desc, work.idle_from_ns, work.process, work.device
limit :rows
