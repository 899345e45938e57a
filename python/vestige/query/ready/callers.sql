-- who calls a function, and for how long
-- function: as shown, or the end of its name
-- rows = 20: how many callers
with called as (
    select process, stack, name, count(*) as calls, sum(self_ns) as self_ns,
           sum(case when (flags & 128) = 0 then duration_ns else 0 end) as total_ns
    from span
    where name = :function or right(name, length(:function) + 1) in (' ' || :function, '.' || :function)
    group by process, stack, name
)
select cast(sum(called.calls) as bigint) as calls,
       cast(sum(called.total_ns) as bigint) as total_ns,
       cast(sum(called.self_ns) as bigint) as self_ns,
       count(distinct called.process) as processes,
       called.name as function,
       coalesce(above.name, '(nobody)') as caller
from called
join stack on stack.process = called.process and stack.stack = called.stack
left join stack above on above.process = stack.process and above.stack = stack.parent
group by called.name, above.name
order by total_ns desc, calls desc, called.name, caller
limit :rows
