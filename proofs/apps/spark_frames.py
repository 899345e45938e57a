"""PySpark on this machine, with functions of Python in its worker processes."""

from pyspark.sql import SparkSession
from pyspark.sql.functions import udf

if __name__ == "__main__":
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    square = udf(lambda number: number * number, "long")
    frame = spark.range(1000).withColumn("square", square("id"))
    print(frame.agg({"square": "sum"}).collect())
    print(spark.sparkContext.parallelize(range(100), 2).map(lambda x: x + 1).sum())
    spark.stop()
