-- the longest calls, of one function or of all
-- function = : only this one; as shown, or the end of its name
-- rows = 20: how many of them
select span.duration_ns, span.self_ns, process.rank, process.host, process.pid,
       thread.name as thread, span.start_ns, span.name, span.args
from span
join process on process.process = span.process
left join thread on thread.process = span.process and thread.thread = span.thread
where :function = '' or span.name = :function
   or right(span.name, length(:function) + 1) in (' ' || :function, '.' || :function)
order by span.duration_ns desc, span.process, span.span
limit :rows
