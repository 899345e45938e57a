"""SQL over traces: the tables to query, the engines that run queries, ready questions, and the printing of answers.

`vestige query` uses all of this; in a program, vestige.open() gives the tables to DuckDB, polars and pandas. Nothing
here runs in a traced program. The engines are optional packages: DuckDB, and PySpark.
"""
