-- records that are missing: by process and thread, and why
select process.rank, process.host, process.pid, thread.name as thread, lost.kind,
       count(*) as stretches,
       cast(sum(lost.records) as bigint) as records,
       cast(sum(lost.duration_ns) as bigint) as duration_ns,
       min(lost.start_ns) as first_ns
from lost
join process on process.process = lost.process
left join thread on thread.process = lost.process and thread.thread = lost.thread
group by process.process, process.rank, process.host, process.pid, lost.thread, thread.name, lost.kind
order by records desc, process.process, lost.thread, lost.kind
