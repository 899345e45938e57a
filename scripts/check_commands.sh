#!/bin/sh
# Gives every command COUNT damaged inputs (1,000), in two processes. Uses .venv/clients, because `vestige
# query` needs DuckDB.
set -eu

python=$PWD/.venv/clients/bin/python
count=${COUNT:-1000}
mkdir -p build/commands
log=$PWD/build/commands
cd tests/python
"$python" fuzz_commands.py --count "$count" info report diff export view 'et check' run >"$log/1.log" 2>&1 &
first=$!
status=0
"$python" fuzz_commands.py --count "$count" memory-report recover pack 'et show' query memory completion \
    >"$log/2.log" 2>&1 || status=1
wait "$first" || status=1
cat "$log/1.log" "$log/2.log"
exit $status
