#!/bin/sh
# Adds up what the given logs of tests say: what was not run and why, then how
# many passed, failed and were skipped. Knows the closing lines of pytest, Meson
# and scripts/lint.sh. AGAIN is how many of those that failed passed afterwards.
set -eu

# As pytest tells it: SKIPPED [2] file:line: reason.
sed -nE 's/^SKIPPED \[([0-9]+)\] [^ ]+: /\1 /p' "$@" | awk '
    { n = $1; sub(/^[0-9]+ /, ""); of[$0] += n; all += n }
    END {
        if (all) printf "not run: %d tests\n", all; fflush()
        for (reason in of) printf "  %4d because: %s\n", of[reason], reason | "sort -rn"
    }'
cat "$@" | awk -v again="${AGAIN:-0}" '
    / in [0-9.]+s/ { for (i = 2; i <= NF; i++) { sub(/,$/, "", $i); n[$i] += $(i - 1) } }
    /^Ok:/ { n["passed"] += $2 }
    /^(Fail|Timeout|Unexpected Pass):/ { n["failed"] += $NF }
    /^Skipped:/ { n["skipped"] += $2 }
    /^[0-9]+ checks passed, [0-9]+ failed/ { n["passed"] += $1; n["failed"] += $4 }
    END {
        printf "%d passed, %d failed, %d skipped\n", n["passed"] + again,
            n["failed"] + n["error"] + n["errors"] - again, n["skipped"]
    }'
