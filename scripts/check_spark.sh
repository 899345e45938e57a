#!/bin/sh
# Runs every ready question of `vestige query` on a local Spark, too, and compares the rows. PySpark (half a
# gigabyte) has a separate environment on top of the clients' and of Python $1's.
set -eu

if ! command -v java >/dev/null && [ -z "${JAVA_HOME:-}" ]; then
    echo "skip  spark: there is no Java, which it runs on"
    exit 0
fi
if [ ! -e .venv/spark/.tools ]; then
    echo "making .venv/spark"
    rm -rf .venv/spark
    ".venv/$1/bin/python" -m venv --without-pip .venv/spark
    ".venv/$1/bin/python" -m pip --python .venv/spark/bin/python install -qq \
        --disable-pip-version-check --no-compile 'pyspark==4.3.0'
    site='import sysconfig; print(sysconfig.get_path("purelib"))'
    for base in clients "$1"; do
        ".venv/$base/bin/python" -c "$site"
    done >"$(.venv/spark/bin/python -c "$site")/vestige-base.pth"
    touch .venv/spark/.tools
fi
.venv/spark/bin/python -m pytest -q tests/clients/test_query_spark.py
