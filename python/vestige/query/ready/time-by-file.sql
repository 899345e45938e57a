-- source files by the own time of their functions
-- rows = 20: how many of them
with one as (
    select process, func, count(*) as calls, sum(self_ns) as self_ns from span group by process, func
)
select cast(sum(one.calls) as bigint) as calls,
       cast(sum(one.self_ns) as bigint) as self_ns,
       1e2 * sum(one.self_ns) / nullif((select sum(self_ns) from one), 0) as self_percent,
       count(distinct func.name) as functions,
       coalesce(func.file, '(' || func.kind || ')') as file
from one join func on func.process = one.process and func.func = one.func
group by coalesce(func.file, '(' || func.kind || ')')
order by 2 desc, file
limit :rows
