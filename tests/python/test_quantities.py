"""Sizes, times and counts as people read them; only one module formats them."""

import re
from pathlib import Path

import pytest

import vestige
from vestige.base.quantities import chosen_time, duration, percent, plural, power_size, size

pytestmark = pytest.mark.any_python


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "0.98 KiB"),
        (1536, "1.50 KiB"),
        (-1536, "-1.50 KiB"),
        (100 << 10, "100 KiB"),
        ((1 << 20) - 1, "1.00 MiB"),
        (5 << 30, "5.00 GiB"),
        (1 << 62, "4.00 EiB"),
        (1 << 80, "1048576 EiB"),
    ],
)
def test_a_size_has_three_digits_and_a_unit_of_1024(count, text):
    assert size(count) == text


@pytest.mark.parametrize(
    ("ns", "text"),
    [(0, "0 ns"), (999, "999 ns"), (1000, "1.00 us"), (-25_000, "-25.0 us"), (2_350_000, "2.35 ms"), (3e11, "300 s")],
)
def test_a_duration_has_three_digits_and_a_unit(ns, text):
    assert duration(ns) == text


def test_a_time_that_somebody_chose_has_no_digits_that_he_did_not_write():
    assert [chosen_time(ns) for ns in (500, 10_000, 1_500_000, 2 * 10**9)] == ["500 ns", "10 us", "1.5 ms", "2 s"]


def test_counts_powers_and_shares():
    assert [plural(1, "call"), plural(2000, "call"), plural(2, "process", "processes")] == [
        "1 call",
        "2,000 calls",
        "2 processes",
    ]
    assert [power_size(1), power_size(512 << 10), power_size(1 << 40)] == ["1 B", "512 KiB", "1 TiB"]
    assert [percent(0.12), percent(-0.031), percent(11)] == ["+12%", "-3.1%", "12x"]


def test_no_other_module_makes_up_units_of_its_own():
    """torch's tables print numbers as torch does; the page in the browser formats numbers in JavaScript."""
    package = Path(vestige.__file__).parent
    own = {"base/quantities.py", "torch/table.py"}
    text = re.compile(r"""["'](KB|MB|GB|KiB|MiB|GiB|us|ms)["']|\} (KB|kB|MB|GB|KiB|MiB|GiB)\b""")
    found = [
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if text.search(path.read_text()) and path.relative_to(package).as_posix() not in own
    ]
    assert found == []
