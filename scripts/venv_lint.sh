#!/bin/sh
# Makes .venv/lint with the tools of `make lint`. The tools come from PyPI; those for JavaScript come from
# npm, if node is installed.
set -eu

python=$(scripts/find_python.sh --tools)
echo "making .venv/lint"
rm -rf .venv/lint
"$python" -m venv .venv/lint
.venv/lint/bin/python -m pip install -qq --disable-pip-version-check \
    -r scripts/lint/requirements.txt
if command -v npm >/dev/null; then
    cp scripts/lint/package.json scripts/lint/package-lock.json .venv/lint
    npm ci --silent --no-fund --no-audit --prefix .venv/lint >/dev/null || {
        rm -rf .venv/lint/node_modules
        echo 'npm could not install tsc and eslint: JavaScript is not checked'
    }
fi
