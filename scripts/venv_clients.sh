#!/bin/sh
# Makes the environment .venv/clients: programs that read our traces, on top of
# what is installed for Python $1.
set -eu

echo "making .venv/clients"
python=$PWD/.venv/$1/bin/python
rm -rf .venv/clients
"$python" -m venv --without-pip .venv/clients
"$python" -m pip --python .venv/clients/bin/python install -qq \
    --disable-pip-version-check --no-deps --no-compile \
    -r tests/clients/requirements.txt
site='import sysconfig; print(sysconfig.get_path("purelib"))'
"$python" -c "$site" >"$(.venv/clients/bin/python -c "$site")/vestige-base.pth"
# The command, as a script of this environment: it has DuckDB.
cat >.venv/clients/bin/vestige <<'END'
#!/bin/sh
exec "$(dirname "$0")/python" -m vestige "$@"
END
chmod +x .venv/clients/bin/vestige
# speedscope is a page: the tests open it in a browser.
if command -v npm >/dev/null; then
    npm install --silent --no-fund --no-audit --prefix .venv/clients \
        speedscope@1.25.0 >/dev/null ||
        echo 'no speedscope: its test is skipped'
fi
