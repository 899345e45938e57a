"""torch's own traceback of the same stack, if torch is installed."""

import pickle
import sys

import pytest

pytest.importorskip("torch")

from torch._C import _profiler as torch_profiler
from torch.utils._traceback import CapturedTraceback as TorchTraceback

from vestige.traceback import CapturedTraceback, gather_traceback, symbolize_tracebacks


def nested(depth, function):
    return [function() for _ in range(1)][0] if depth == 0 else nested(depth - 1, function)


def both():
    return CapturedTraceback.extract(), TorchTraceback.extract()  # one line


def test_summaries_and_formats_are_the_same():
    ours, theirs = nested(10, both)
    assert [(f.filename, f.lineno, f.name) for f in ours.summary()] == [
        (f.filename, f.lineno, f.name) for f in theirs.summary()
    ]
    assert ours.format() == theirs.format()
    assert CapturedTraceback.format_all([ours, ours]) == TorchTraceback.format_all([theirs, theirs])
    ours.cleanup(), theirs.cleanup()
    assert ours.summary() == theirs.summary() == []
    assert CapturedTraceback.format_all([ours]) == TorchTraceback.format_all([theirs]) == [[]]


def test_dicts_are_the_same():
    ours, theirs = nested(
        10, lambda: (gather_traceback(True, False, False), torch_profiler.gather_traceback(True, False, False))
    )
    [mine], [torchs] = symbolize_tracebacks([ours]), torch_profiler.symbolize_tracebacks([theirs])
    assert mine == torchs


def test_a_traceback_given_twice_has_one_list_in_both():
    taken = torch_profiler.gather_traceback(True, False, False)
    first, second = torch_profiler.symbolize_tracebacks([taken, taken])
    assert first is second


def test_a_pickled_one_is_empty_in_both():
    ours, theirs = (pickle.loads(pickle.dumps(taken)) for taken in both())
    assert ours.tb is theirs.tb is None
    assert ours.summary() == theirs.summary() == []


def test_native_frames_around_a_call_of_sorted_have_the_same_names():
    taken = []

    def caller():
        sorted([1], key=lambda x: taken.append((gather_traceback(True, False, True), torch_profiler.gather_traceback(True, False, True))))  # fmt: skip

    caller()
    ours, theirs = taken[0]
    mine = [frame["name"] for frame in symbolize_tracebacks([ours])[0]]
    torchs = [frame["name"] for frame in torch_profiler.symbolize_tracebacks([theirs])[0]]
    for name in ("caller", "<lambda>"):
        assert name in mine and name in torchs
    for name in ("builtin_sorted", "list_sort_impl"):
        assert (name in mine) == (name in torchs)
    if "builtin_sorted" not in mine:
        pytest.skip("the interpreter was stripped of its names")
    assert mine.index("caller") > mine.index("builtin_sorted")
    if sys.version_info[:2] == (3, 11):
        assert torchs.index("caller") < torchs.index("builtin_sorted")  # torch shows it at a wrong place
