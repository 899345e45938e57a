#!/bin/sh
# Builds a copy of the sources in a folder whose name has a space and a letter that
# is not ASCII, on Python $1, and runs some tests there: neither code nor tests may
# care where they lie. The core, Meson and the tests' packages are those of here.
set -eu

here=$PWD
there="$here/build/a földer/vestige"
rm -rf "$there"
mkdir -p "$there/.venv" "$there/build"
# Copies the files that are or would be under version control, with their times.
# shellcheck disable=SC2016 # the inner shell expands it
git ls-files -z --cached --others --exclude-standard |
    xargs -0 sh -c 'for file; do [ ! -e "$file" ] || printf "%s\0" "$file"; done' sh |
    xargs -0 cp -p --parents -t "$there"
ln -s "$here/.venv/tools" "$there/.venv/tools"
ln -s "$here/build/c" "$there/build/c"

cd "$there"
unset MAKEFLAGS MFLAGS
make --no-print-directory develop PY="$1" QUICK="$1"
site='import sysconfig; print(sysconfig.get_path("purelib"))'
"$here/.venv/$1/bin/python" -c "$site" \
    >"$(".venv/$1/bin/python" -c "$site")/vestige-tests.pth"
# Like every environment that has torch: no test should wait for the compiler. The recorder of operators is the same
# file here and there.
package='import vestige._torch as folder; print(*folder.__path__)'
there_package=$(".venv/$1/bin/python" -c "$package")
find "$("$here/.venv/$1/bin/python" -c "$package")" -name 'operators-*.so' -exec cp -p {} "$there_package" \;
".venv/$1/bin/python" -m vestige.torch.build

cd tests/python
PATH="$there/.venv/$1/bin:$PATH" python -m pytest -q -rfEs -p no:cacheprovider \
    test_children.py test_cli_files.py test_noted_sources.py test_memory_api.py test_view_command.py \
    test_memory_stacks.py::test_our_own_frames_are_not_shown
