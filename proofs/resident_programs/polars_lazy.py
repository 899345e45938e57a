import polars

rows = polars.DataFrame({"a": polars.int_range(0, 3_000_000, eager=True)})
frame = rows.with_columns(b=polars.col("a") % 1000)
print(frame.lazy().group_by("b").agg(polars.col("a").sum()).collect().shape)
