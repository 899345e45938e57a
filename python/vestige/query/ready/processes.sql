-- processes: how long each was recorded, and how it ended
select process.process, run.run, process.rank, process.host, process.pid, process.parent_pid,
       process.end_ns - process.start_ns as duration_ns, process.records, process.lost, process.dropped,
       process.ended, process.name
from process join run on run.process = process.process
order by process.process
