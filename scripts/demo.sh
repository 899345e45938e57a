#!/bin/sh
# Traces examples/demo.py with Python $1 and says where the trace is.
set -eu

vestige=.venv/$1/bin/vestige
mkdir -p build
rm -f build/demo.vst build/demo.json.gz
"$vestige" run -o build/demo.vst examples/demo.py
"$vestige" report build/demo.vst
"$vestige" export build/demo.vst build/demo.json.gz
echo
echo "The trace is build/demo.vst. To look at it as a timeline, open"
echo "build/demo.json.gz at https://ui.perfetto.dev or in chrome://tracing."
