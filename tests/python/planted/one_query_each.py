import sqlite3

QUERY = "with recursive n(i) as (select 1 union all select i + 1 from n where i < 1000) select max(i) from n"


def load_orders(database):
    for _ in range(1500):
        database.execute(QUERY).fetchone()


load_orders(sqlite3.connect(":memory:"))
