"""SQL over traces: which tables there are to ask, the engines that answer, ready questions, and how answers are shown.

`vestige query` is all of it; in a program, vestige.open() gives the same tables to DuckDB, polars and pandas. Nothing
here runs in a traced program. The engines are optional packages: DuckDB, and PySpark.
"""
