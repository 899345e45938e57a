-- functions whose own time differs most between ranks
-- rows = 20: how many of them
with one as (
    select span.name, process.rank, sum(span.self_ns) as self_ns
    from span join process on process.process = span.process
    where process.rank is not null
    group by span.name, process.rank
),
placed as (
    select name, rank, self_ns, median(self_ns) over (partition by name) as median_ns,
           count(*) over (partition by name) as ranks,
           row_number() over (partition by name order by self_ns desc, rank) as place
    from one
)
select cast(self_ns - median_ns as bigint) as apart_ns,
       cast(median_ns as bigint) as median_ns,
       cast(self_ns as bigint) as most_ns,
       rank as most_rank, ranks, name
from placed
where place = 1 and ranks > 1 and self_ns > median_ns
order by apart_ns desc, name
limit :rows
