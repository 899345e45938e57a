-- ranks that took longer for a step than most
-- step = ProfilerStep#: a step's name, or the part before its number
-- over = 1.2: how many times as long as the median
-- rows = 100: how many of them
with step as (
    select span.process, process.rank, process.host, span.duration_ns,
           coalesce(try_cast(substr(span.name, length(:step) + 1) as int),
                    row_number() over (partition by span.process order by span.start_ns) - 1) as step
    from span join process on process.process = span.process
    where (span.flags & 3) = 0  -- whole ones
      and (span.name = :step or right(span.name, length(:step) + 2) = ': ' || :step
           or (left(span.name, length(:step)) = :step
               and try_cast(substr(span.name, length(:step) + 1) as int) is not null))
),
usual as (
    select step, median(duration_ns) as median_ns, count(*) as ranks from step group by step
)
select step.step, step.rank, step.host, step.process, step.duration_ns,
       cast(usual.median_ns as bigint) as median_ns,
       cast(step.duration_ns - usual.median_ns as bigint) as behind_ns,
       step.duration_ns / nullif(usual.median_ns, 0) as times,
       usual.ranks
from step join usual on usual.step = step.step
where usual.ranks > 1 and step.duration_ns > :over * usual.median_ns
order by behind_ns desc, step.step, step.process
limit :rows
