"""Bounds in the command and in profile(): sizes, times, and the errors for invalid bounds."""

import sys
from datetime import timedelta

import pytest

from bounded import MIB
from vestige import Trace, profile
from vestige.base.quantities import parse_file_bound, parse_size, parse_time

pytestmark = pytest.mark.any_python

LOOP = """\
    def leaf():
        pass

    def main():
        for _ in range(200_000):
            leaf()

    main()
    """


def test_the_command_bounds_the_file_and_tells(workplace):
    workplace.write("loop.py", LOOP)
    result = workplace.vestige("run", "--max-size", "1M", "-o", "t.vst", "loop.py")
    assert result.returncode == 0
    assert "older records were dropped to stay within the limit of size or time; the last" in result.stderr
    assert (workplace.path / "t.vst").stat().st_size <= MIB
    info = workplace.vestige("info", "t.vst").stdout
    assert "dropped to stay within the limit of size or time, 0 lost" in info
    report = workplace.vestige("report", "t.vst").stdout
    assert "older records were dropped" in report
    assert workplace.vestige("run", "-q", "--last", "1h", "-o", "u.vst", "loop.py").returncode == 0
    assert Trace(str(workplace.path / "u.vst")).info()["dropped"] == 0
    assert "dropped" not in workplace.vestige("report", "u.vst").stdout


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--max-size", "12Q"], "--max-size: not a size: '12Q'; write a number and K, M or G, such as 256M"),
        (["--max-size", "100K"], "--max-size must be at least 1M, not '100K'"),
        (["--last", "soon"], "--last: not a time: 'soon'; write a number and us, ms, s, m or h, such as 30s"),
        (["--last", "0"], "--last must be more than 0, not '0'"),
    ],
)
def test_a_bound_that_cannot_be_is_one_clear_line(workplace, options, message):
    workplace.write("loop.py", LOOP)
    result = workplace.vestige("run", *options, "loop.py")
    assert (result.returncode, result.stderr) == (2, f"vestige: {message}\n")
    assert not list(workplace.path.glob("*.vst"))


# ---- units -------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "size"),
    [("1", 1), ("1B", 1), ("2k", 2048), ("2KB", 2048), ("2KiB", 2048), ("1.5M", 3 << 19), (" 3 G ", 3 << 30), (7, 7)],
)
def test_sizes(text, size):
    assert parse_size("x", text) == size


@pytest.mark.parametrize(
    ("text", "time"),
    [("30s", 30e9), ("30", 30e9), ("500ms", 5e8), ("2m", 120e9), ("1.5h", 5400e9), (2.5, 25e8), (timedelta(0, 1), 1e9)],
)
def test_times(text, time):
    assert parse_time("x", text) == time


@pytest.mark.parametrize("text", ["", "M", "-1M", "1e3", "0x10", "1M M", 0, -1, 1 << 63])
def test_no_sizes(text):
    with pytest.raises(ValueError, match="^x"):
        parse_size("x", text)


@pytest.mark.parametrize("value", ["", "s", "-1s", "1d", 0, -2, float("nan"), float("inf"), timedelta(0)])
def test_no_times(value):
    with pytest.raises(ValueError, match="^x"):
        parse_time("x", value)


def test_what_is_neither_text_nor_number_is_a_type_error():
    for value in (None, [], True, b"1M"):
        with pytest.raises(TypeError, match="^x must be"):
            parse_size("x", value)
        with pytest.raises(TypeError, match="^x must be"):
            parse_time("x", value)
    with pytest.raises(ValueError, match="^max_size must be at least 1M"):
        profile(max_size=1000)
    assert parse_file_bound("x", "1M") == MIB
    assert sys.modules["vestige.base.quantities"].__doc__
