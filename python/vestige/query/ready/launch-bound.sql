-- how much of a device's idle time passed before the next launch was called: the program was late, not the device
with work as (
    select process, device, start_ns, start_ns + duration_ns as end_ns, launch_start_ns,
           max(start_ns + duration_ns) over (
               partition by process, device order by start_ns, start_ns + duration_ns, stream
               rows between unbounded preceding and 1 preceding
           ) as idle_from_ns
    from activity
    where kind in ('kernel', 'copy', 'set')
),
idle as (
    select process, device, start_ns, end_ns,
           case when start_ns > idle_from_ns then start_ns - idle_from_ns else 0 end as idle_ns,
           case when start_ns > idle_from_ns and launch_start_ns is not null
                then greatest(least(launch_start_ns, start_ns) - idle_from_ns, 0) else 0 end as until_launch_ns
    from work
)
select process.rank, process.pid, device.platform, device.ordinal,
       count(*) as activities,
       cast(max(idle.end_ns) - min(idle.start_ns) as bigint) as span_ns,
       cast(sum(idle_ns) as bigint) as idle_ns,
       cast(sum(until_launch_ns) as bigint) as until_launch_ns
from idle
join process on process.process = idle.process
left join device on device.process = idle.process and device.device = idle.device
group by idle.process, process.rank, process.pid, idle.device, device.platform, device.ordinal
order by idle_ns desc, idle.process, idle.device
