#!/bin/bash
# Runs the proofs named by its arguments, which take longer than `make test` allows; `long` stands for nearly all of them.
# Without arguments it lists them. ARGS goes to the proof; proofs/README.md says what each of them proves.
set -euo pipefail

PY=${PY:-$(scripts/find_python.sh --default)}
python=.venv/$PY/bin/python
export PATH="$PWD/.venv/tools/bin:$PATH"

# Makes the environments $@: targets below .venv; every/… stands for that target of each Python that is here.
need() {
    local target
    for target; do
        case $target in
        every/*)
            # shellcheck disable=SC2046 # a list of versions
            ${MAKE:-make} --no-print-directory \
                $({ scripts/find_python.sh --all && scripts/find_python.sh --free-threaded; } | sed "s|.*|.venv/&/${target#every/}|")
            ;;
        *) ${MAKE:-make} --no-print-directory ".venv/$target" ;;
        esac
    done
}

check() {
    # shellcheck disable=SC2086 # ARGS is a list of words
    case $1 in
    slow) # the tests in Python with the slow ones on every Python: `make test` runs those on two
        # shellcheck disable=SC2046 # a list of versions
        VESTIGE_SLOW=all ${MAKE:-make} --no-print-directory --keep-going \
            $({ scripts/find_python.sh --all && scripts/find_python.sh --free-threaded; } | sed 's|.*|test-python-&|')
        ;;
    faults) # what the sanitized tests try only some of, in full; and transformers
        need tools/.made "$PY/.installed" "clients/.tools-$PY"
        VESTIGE_LONG=1 scripts/test_part.sh asan
        "$python" -m pip --python .venv/clients/bin/python install -qq --disable-pip-version-check \
            --no-deps --no-compile -r tests/clients/requirements-long.txt
        .venv/clients/bin/python -m pytest -q tests/clients/test_accelerate.py
        ;;
    budget) # overhead with a budget, and what it estimates; ARGS='--seconds 2 --python 3.12' is shorter
        need 3.11/.installed 3.12/.installed 3.13/.installed 3.14/.installed "$PY/.installed"
        "$python" proofs/budget.py $ARGS
        ;;
    production) # an hour of `vestige run --budget 2% --last 60s` beside bare servers; ARGS='--minutes 5' is shorter
        need "$PY/.installed"
        "$python" proofs/production.py --results proofs/results/production.md $ARGS
        ;;
    commands) # 1,000 damaged inputs for every command; COUNT=100 is shorter
        need "$PY/.installed" "clients/.tools-$PY"
        scripts/check_commands.sh
        ;;
    tsan) # eight threads of a Python without the GIL under the thread sanitizer; ARGS=60 (seconds) is shorter
        need tools/.made
        scripts/check_tsan.sh ${ARGS:-600}
        ;;
    cupti) # our declarations of CUPTI's records beside all of NVIDIA's headers; ARGS=12.9.79 compares those
        need "$PY/.test-basics"
        "$python" proofs/cupti.py $ARGS
        ;;
    spark) # every ready question gives the same rows on Spark; needs Java and half a gigabyte
        need "$PY/.installed" "clients/.tools-$PY"
        scripts/check_spark.sh "$PY"
        ;;
    aarch64) # built for aarch64, tested under emulation; ARGS=tests/python/test_gc.py runs that instead
        need tools/.made
        scripts/check_aarch64.sh $ARGS
        ;;
    musl) # the core on musl, and the tests in C; ARGS=memory_hooks runs that one
        need tools/.made
        scripts/check_musl.sh $ARGS
        ;;
    wheels) # wheels of every Python, installed and tried in a small Debian; ARGS=debian13 is shorter
        ${MAKE:-make} --no-print-directory wheels
        scripts/wheels/check.sh $ARGS
        scripts/wheels/check_sdist.sh
        ;;
    asan-extension) # the extension under the sanitizers; ARGS=tests/python/test_gc.py runs that instead
        need tools/.made
        scripts/check_asan.sh "$PY" $ARGS
        ;;
    debug) # the tests of the extension on debug builds, which count references; ARGS=3.13-dbg is shorter
        need tools/.made
        scripts/check_builds.sh ${ARGS:-3.13-dbg 3.14-dbg 3.15-dbg}
        ;;
    builds) # the tests of the hooks on other kinds of builds, with each engine; ARGS=3.13-debian tests that build
        need tools/.made
        scripts/check_builds.sh ${ARGS:-3.11 3.11-static 3.11-debian 3.13 3.13-static 3.13-debian 3.14 3.15 3.15-shared \
            3.11+dev 3.13+dev 3.15+dev 3.11+malloc 3.13+malloc 3.15+malloc}
        ;;
    storage) # disks that stall, fail or vanish, by FUSE; ARGS='--python 3.12 --runs 2 --stall 3' is shorter
        need 3.11/.installed 3.14/.installed 3.11/.test-basics 3.14/.test-basics "$PY/.installed" "$PY/.test-basics"
        "$python" proofs/storage.py --results proofs/results/storage.md $ARGS
        ;;
    soak) scripts/check_soak.sh ;; # 100,000 starts and stops with each engine of each Python
    attach) scripts/check_attach.sh ;; # 2,000 times attached to a web server and left again, on each Python
    attach-races) scripts/check_attach_races.sh $ARGS ;; # 200 times attached at difficult moments, by each way; ARGS=3.13 is shorter
    cpython | packages) # CPython's own tests, or those of packages; ARGS='--python 3.12 --engine turbo' is shorter
        need every/.installed
        "$python" "proofs/$1.py" $ARGS
        ;;
    torch) # our tests of torch with another version of it, up to 5 GB: VERSION=2.15.0 PY=3.13
        need "$PY/.installed" "$PY/.test-basics"
        scripts/check_torch.sh "$PY" "${VERSION:-2.15.0}" $ARGS
        ;;
    apps) # real applications with and without us, some 3 GB of them; ARGS='--apps flask-debug ray' runs some
        need "$PY/.installed"
        "$python" proofs/apps.py --python "$PY" $ARGS
        ;;
    resident) # `vestige memory` beside the system's own figures
        need "$PY/.installed"
        "$python" -m pip install -qq --disable-pip-version-check -r proofs/resident-requirements.txt
        "$python" proofs/resident.py $ARGS
        ;;
    differential) # generated programs, recorded by every engine; ARGS='--python 3.12 --programs 100' is shorter
        need every/.test-tools
        "$python" proofs/differential.py $ARGS
        ;;
    nasty) # programs that look at frames, counts, depth, hooks: the same with and without us; ARGS='--programs 20'
        need every/.installed
        "$python" proofs/nasty.py $ARGS
        ;;
    findings) # programs with planted causes, and healthy ones; ARGS='--python 3.12 --cause lock' is shorter
        need every/.installed
        "$python" proofs/findings.py $ARGS
        ;;
    callables) # callables of every kind, recorded alike by both engines; ARGS='--python 3.12' is shorter
        need every/.installed
        "$python" proofs/callables.py $ARGS
        ;;
    fuzz) # each libFuzzer target; ARGS='--seconds 600 --minimize' takes the new inputs into the corpora
        need tools/.made
        .venv/tools/bin/python proofs/fuzz.py $ARGS
        ;;
    *)
        echo "check: no check is called '$1'; make check lists them" >&2
        return 2
        ;;
    esac
}

# Names and first words of the checks, from the cases above.
list() { sed -nE 's/^    ([a-z0-9| -]+)\).*# (.*)/\1\t\2/p' "$0" | column -t -s "$(printf '\t')"; }

: "${ARGS:=}"
[ $# -ne 0 ] || { echo 'make check NAME=… runs one of:'; list; exit 2; }
if [ "$1" = long ]; then
    set -- spark soak storage attach attach-races cpython packages differential nasty callables findings apps asan-extension debug builds \
        commands aarch64 musl slow tsan cupti budget production faults
fi
if [ $# -eq 1 ]; then
    check "$1"
    exit
fi
failed=
for name; do
    echo "== check $name"
    "$0" "$name" || failed="$failed $name"
done
[ -z "$failed" ] || { echo "FAILED:$failed"; exit 1; }
