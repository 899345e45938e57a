import pandas

frame = pandas.DataFrame({"key": range(200_000), "text": [f"row {i % 5000}" for i in range(200_000)]})
frame = frame.convert_dtypes(dtype_backend="pyarrow")
print(frame.groupby("text").key.sum().sum())
