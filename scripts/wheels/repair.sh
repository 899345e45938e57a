#!/bin/bash
# Makes wheel $1 one that installs on other machines, in folder $2: auditwheel puts the
# libraries that it needs into it and tags it for the oldest C library that it runs
# on, adapters.py builds the observers of torch's operators once for all of them, where
# there is a torch for such machines, and finish.py adds those, licences and the list of
# what is inside. `make wheels` runs it, and cibuildwheel in its containers. OWNERS names a
# file that tells the packages of libraries; ADAPTERS is where the observers are, and
# ADAPTERS= leaves them out.
set -euo pipefail

here=$(dirname "$0")
mkdir -p "$2"
work=$(mktemp -d "$2/.work.XXXXXX")
trap 'rm -rf "$work"' EXIT

adapters=${ADAPTERS-build/adapters}
auditwheel repair ${PLAT:+--plat "$PLAT"} --strip --wheel-dir "$work" "$1"
case $(ls "$work") in *musllinux*) adapters= ;; esac
[ -z "$adapters" ] || "${PYTHON:-python3}" "$here/adapters.py" "$work"/*.whl "$adapters"
"${PYTHON:-python3}" "$here/finish.py" ${OWNERS:+--owners "$OWNERS"} ${adapters:+--adapters "$adapters"} "$work"/*.whl "$2"
