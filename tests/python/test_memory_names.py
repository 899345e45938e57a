"""Facts that the memory tracer reads directly from code objects, compared with the interpreter's answers."""

import importlib.util
import marshal
import os
import sysconfig
import types
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vestige import _core

STDLIB = Path(sysconfig.get_path("stdlib"))


def code_objects(code):
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from code_objects(constant)


def load(path):
    """Returns the code of a module, from its compiled file if there is one."""
    try:
        cached = Path(importlib.util.cache_from_source(str(path))).read_bytes()
        return marshal.loads(cached[16:])
    except (OSError, ValueError, EOFError):
        try:
            return compile(path.read_bytes(), str(path), "exec")
        except (SyntaxError, ValueError):
            return None


def expected_lines(code):
    lines = [-1] * (len(code.co_code) // 2)
    for start, end, line in code.co_lines():
        for at in range(start // 2, end // 2):
            lines[at] = -1 if line is None else line
    return lines


@pytest.mark.filterwarnings("ignore")
def test_the_lines_of_the_whole_standard_library_are_the_interpreters():
    compared = 0
    for folder, folders, names in os.walk(STDLIB):
        folders[:] = [name for name in folders if name not in ("site-packages", "__pycache__", "test", "lib2to3")]
        for name in names:
            path = Path(folder) / name  # Debian links sitecustomize.py to a file that may be missing
            module = load(path) if name.endswith(".py") and path.exists() else None
            for code in code_objects(module) if module else ():
                assert _core._code_lines(code) == expected_lines(code), (folder, name, code.co_name)
                compared += 1
    assert compared > 10_000


@given(st.lists(st.integers(0, 400), min_size=1, max_size=40))
def test_lines_far_apart_and_backwards_are_found(gaps):
    source = "".join("\n" * gap + f"a{i} = (b,\n" + "\n" * (gap % 7) + "c)\n" for i, gap in enumerate(gaps))
    code = compile(source, "f.py", "exec")
    assert _core._code_lines(code) == expected_lines(code)


def test_code_without_lines_has_none():
    code = compile("a = 1\nb = 2\n", "f.py", "exec").replace(co_linetable=b"")
    assert set(_core._code_lines(code)) == {-1}


def encoded(text):
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace")


@given(st.text(st.characters(), max_size=60))
def test_a_text_has_the_same_bytes(text):
    assert _core._plain_text(text) == encoded(text)


@given(st.text(st.sampled_from("aé€😀\udc80\udcff\ud800\udfff\x00"), max_size=12))
def test_a_text_with_surrogates_has_the_same_bytes(text):
    assert _core._plain_text(text) == encoded(text)
