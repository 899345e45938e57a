-- threads by their share of the time in calls, not waiting
-- rows = 40: how many of them
with one as (
    select process, thread, count(*) as calls,
           sum(case when depth = 0 and (flags & 64) = 0 then duration_ns else 0 end) as in_calls_ns,
           sum(case when kind = 'native' and (name like '%acquire%' or name like '%sleep%' or name like '%wait%'
                                              or name like '%select%' or name like '%poll%' or name like '%recv%'
                                              or name like '%accept%') then self_ns else 0 end) as waiting_ns
    from span
    group by process, thread
)
select process.rank, process.host, process.pid, thread.tid, thread.name as thread, one.calls,
       cast(one.in_calls_ns as bigint) as in_calls_ns,
       cast(one.waiting_ns as bigint) as waiting_ns,
       1e2 * (one.in_calls_ns - one.waiting_ns) / nullif(process.end_ns - process.start_ns, 0) as busy_percent
from one
join process on process.process = one.process
left join thread on thread.process = one.process and thread.thread = one.thread
order by busy_percent desc, one.process, one.thread
limit :rows
