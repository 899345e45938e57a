-- functions by how much more they took in the second run
-- runs: 2
-- function = : only this one; as shown, or the end of its name
-- rows = 20: how many of them
with one as (
    select span.name,
           sum(case when run.run = 0 then 1 else 0 end) as calls_before,
           sum(case when run.run = 1 then 1 else 0 end) as calls_after,
           sum(case when run.run = 0 then span.self_ns else 0 end) as self_before_ns,
           sum(case when run.run = 1 then span.self_ns else 0 end) as self_after_ns,
           sum(case when run.run = 0 and (span.flags & 128) = 0 then span.duration_ns else 0 end) as total_before_ns,
           sum(case when run.run = 1 and (span.flags & 128) = 0 then span.duration_ns else 0 end) as total_after_ns
    from span join run on run.process = span.process
    where :function = '' or span.name = :function
       or right(span.name, length(:function) + 1) in (' ' || :function, '.' || :function)
    group by span.name
)
select cast(self_after_ns - self_before_ns as bigint) as growth_ns,
       cast(self_before_ns as bigint) as self_before_ns,
       cast(self_after_ns as bigint) as self_after_ns,
       self_after_ns / nullif(cast(self_before_ns as double), 0) as times,
       cast(calls_before as bigint) as calls_before,
       cast(calls_after as bigint) as calls_after,
       cast(total_before_ns as bigint) as total_before_ns,
       cast(total_after_ns as bigint) as total_after_ns,
       name
from one
order by growth_ns desc, name
limit :rows
