import duckdb

connection = duckdb.connect()
connection.execute("create table t as select range as a, range % 1000 as b from range(5000000)")
print(connection.execute("select count(*) from (select b, sum(a) from t group by b)").fetchone())
