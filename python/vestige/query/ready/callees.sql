-- what a function calls, and for how long
-- function: as shown, or the last part of its name
-- rows = 20: how many callees
with above as (
    select stack.process, stack.stack, func.name
    from stack join func on func.process = stack.process and func.func = stack.func
    where func.name = :function or right(func.name, length(:function) + 1) in (' ' || :function, '.' || :function)
)
select count(*) as calls,
       cast(sum(span.duration_ns) as bigint) as total_ns,
       cast(sum(span.self_ns) as bigint) as self_ns,
       count(distinct span.process) as processes,
       above.name as function,
       span.name as callee
from span
join stack on stack.process = span.process and stack.stack = span.stack
join above on above.process = stack.process and above.stack = stack.parent
group by above.name, span.name
order by total_ns desc, calls desc, above.name, callee
limit :rows
