-- the slowest rank of each step, and how far behind it was
-- step = ProfilerStep#: a step's name, or the part before its number
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
    select step, median(duration_ns) as median_ns, min(duration_ns) as least_ns, count(*) as ranks
    from step group by step
),
placed as (
    select step.*, row_number() over (partition by step order by duration_ns desc, process) as place from step
)
select placed.step, placed.rank, placed.host, placed.process, placed.duration_ns,
       cast(usual.median_ns as bigint) as median_ns,
       usual.least_ns,
       cast(placed.duration_ns - usual.median_ns as bigint) as behind_ns,
       usual.ranks
from placed join usual on usual.step = placed.step
where placed.place = 1
order by placed.step
