#!/bin/sh
# Traces examples/demo.py with Python $1, shows the report, and says how to look
# at the trace.
set -eu

vestige=.venv/$1/bin/vestige
rm -f build/demo.vst build/demo.json.gz
"$vestige" run -o build/demo.vst examples/demo.py
"$vestige" export build/demo.vst -o build/demo.json.gz
echo
echo "The trace is build/demo.vst; '$vestige report build/demo.vst' lists every function."
echo "For a timeline open build/demo.json.gz at https://ui.perfetto.dev."
