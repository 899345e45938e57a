"""A pytest plugin: a marker limits how much memory a test may take, and how much it may leak.

    @pytest.mark.vestige_memory(limit="24 MB", leaks="1 MB")
    def test_load(): ...

`limit` is for the high-water mark of what the test allocates, `leaks` for the memory that a single line leaves behind
(cycles are not counted). Memory is recorded only around the call of a test that has such a marker, or of every test
with --vestige-memory; only then are the modules for recording loaded. The markers of pytest-memray, limit_memory and
limit_leaks, work here too, unless pytest-memray is installed: then pytest-memray handles them.
"""

from __future__ import annotations

import pytest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import Any, NoReturn

    Line = tuple[str, int, int]  # place, bytes, blocks

MARKERS = {
    "vestige_memory(limit, leaks)": "fail if the test's memory peaks above limit, or a line leaks more than leaks",
    "limit_memory(limit)": "fail if the test's memory peaks above limit",
    "limit_leaks(limit)": "fail if a line of the test leaks more than limit",
}
LINES_SHOWN = 5
TESTS_SHOWN = 10
ROWS = 1000  # lines read from a trace: the ones with the most bytes
PROPERTY = "vestige memory peak"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("vestige").addoption(
        "--vestige-memory",
        action="store_true",
        help="record the memory of every test, and list those that peak highest",
    )


def pytest_configure(config: pytest.Config) -> None:
    for name, meaning in MARKERS.items():
        if name.startswith("vestige") or _has_aliases(config):
            config.addinivalue_line("markers", f"{name}: {meaning} (vestige)")


def _has_aliases(config: pytest.Config) -> bool:
    return not config.pluginmanager.hasplugin("memray")


# ---- the limits of a test ------------------------------------------------


def _limits(item: pytest.Item) -> dict[str, int]:
    """Returns the limits from the test's markers; the closest marker wins."""
    found: dict[str, int] = {}
    mark = item.get_closest_marker("vestige_memory")
    if mark is not None:
        unknown = set(mark.kwargs) - {"limit", "leaks"}
        if mark.args or unknown or not mark.kwargs:
            _refuse('write vestige_memory(limit="24 MB", leaks="1 MB"), or one of the two')
        found.update({name: _size(value) for name, value in mark.kwargs.items()})
    if not _has_aliases(item.config):
        return found
    for alias, name in (("limit_memory", "limit"), ("limit_leaks", "leaks")):
        mark = item.get_closest_marker(alias)
        if mark is None:
            continue
        if len(mark.args) != 1 or mark.kwargs:
            _refuse(f'write {alias}("24 MB"); vestige knows no other arguments')
        found.setdefault(name, _size(mark.args[0]))
    return found


def _size(value: str | int) -> int:
    from .base.quantities import parse_size

    try:
        # Zero is a valid limit, but parse_size() refuses it.
        return parse_size("the limit", value) if str(value).strip(" 0.Bb") else 0
    except (TypeError, ValueError) as error:
        _refuse(str(error))


def _refuse(what: str) -> NoReturn:
    raise pytest.fail.Exception(what, pytrace=False)


# the innermost wrapper, so that memory of other plugins is not counted
@pytest.hookimpl(hookwrapper=True, trylast=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, None]:
    limits = _limits(item)
    if not limits and not item.config.getoption("vestige_memory"):
        yield
        return
    recording = _Recording()
    try:
        recording.begin()
    except RuntimeError as error:  # for example, vestige already records the whole run
        item.warn(pytest.PytestWarning(f"the memory of this test is not checked: {error}"))
        yield
        return
    outcome = yield
    recording.end()
    item.user_properties.append((PROPERTY, recording.peak))
    if outcome.excinfo is None:
        problem = _judge(limits, recording)
        if problem:
            outcome.force_exception(pytest.fail.Exception(problem, pytrace=False))


class _Recording:
    """Records allocations between begin() and end(): the peak, the lines that held it, and the leaks."""

    def begin(self) -> None:
        import gc
        import os
        import tempfile

        from . import memory

        self._folder = tempfile.TemporaryDirectory(prefix="vestige-pytest-")
        self._path = os.path.join(self._folder.name, "t.vst")
        gc.collect()
        self._track = memory.track(self._path)
        self._track.__enter__()

    def end(self) -> None:
        import gc

        gc.collect()  # objects in cycles do not count as leaks
        self._track.__exit__(None, None, None)
        with self._folder:
            self._read()

    def _read(self) -> None:
        from . import Trace
        from .reading.memory import read_memory

        summary = read_memory(Trace(self._path), rows=ROWS)
        self.peak = summary.views["peak"].bytes
        self.held, self.leaks = (
            [(_place(frame), amount.bytes, amount.count) for amount, frame in summary.lines[view]]
            for view in ("peak", "leaks")
        )


def _place(frame: Any) -> str:
    return f"{frame.shown_file}:{frame.line} {frame.function}"


def _judge(limits: dict[str, int], recording: _Recording) -> str:
    """Returns the problem and the lines that cause it; "" if the limits hold."""
    from .base.quantities import size

    parts = []
    if "limit" in limits and recording.peak > limits["limit"]:
        parts.append(
            f"The test's memory peaked at {size(recording.peak)}; it is limited to {size(limits['limit'])}. "
            f"Held then:\n{_listed(recording.held)}"
        )
    if "leaks" in limits:
        leaks = [line for line in recording.leaks if line[1] > limits["leaks"]]
        if leaks:
            parts.append(
                f"{'A line' if len(leaks) == 1 else f'{len(leaks)} lines'} of the test leaked more than "
                f"{size(limits['leaks'])}:\n{_listed(leaks)}"
            )
    return "\n".join(parts)


def _listed(lines: list[Line]) -> str:
    from .base.quantities import plural, size

    text = [f"  {size(held):>9} in {plural(count, 'block')}  {place}" for place, held, count in lines[:LINES_SHOWN]]
    if len(lines) > LINES_SHOWN:
        text.append(f"  and {len(lines) - LINES_SHOWN} more lines")
    return "\n".join(text)


# ---- --vestige-memory ----------------------------------------------------


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    if not config.getoption("vestige_memory"):
        return
    peaks = [
        (dict(report.user_properties)[PROPERTY], report.nodeid)
        for reports in terminalreporter.stats.values()
        for report in reports
        if getattr(report, "when", "") == "call" and PROPERTY in dict(report.user_properties)
    ]
    if peaks:
        from .base.quantities import size

        terminalreporter.section("memory of tests, at most")
        for peak, name in sorted(peaks, key=lambda one: (-one[0], one[1]))[:TESTS_SHOWN]:
            terminalreporter.write_line(f"{size(peak):>10}  {name}")
