-- what a function calls, and for how long
-- function: as shown, or the end of its name
-- rows = 20: how many callees
with called as (
    select process, stack, name, count(*) as calls, sum(self_ns) as self_ns, sum(duration_ns) as total_ns
    from span
    group by process, stack, name
)
select cast(sum(called.calls) as bigint) as calls,
       cast(sum(called.total_ns) as bigint) as total_ns,
       cast(sum(called.self_ns) as bigint) as self_ns,
       count(distinct called.process) as processes,
       above.name as function,
       called.name as callee
from called
join stack on stack.process = called.process and stack.stack = called.stack
join stack above on above.process = stack.process and above.stack = stack.parent
where above.name = :function or right(above.name, length(:function) + 1) in (' ' || :function, '.' || :function)
group by above.name, called.name
order by total_ns desc, calls desc, above.name, callee
limit :rows
