"""`vestige info`: the output stays short for any trace."""

import threading

import pytest

from in_process import vestige
from traces import family, record_alone

pytestmark = pytest.mark.any_python


def many_threads():
    for number in range(50):
        thread = threading.Thread(target=sum, args=([1] * number,), name=f"worker {number}")
        thread.start()
        thread.join()


def test_of_many_threads_those_with_most_records_are_listed_and_the_others_summed_up(tmp_path):
    path = record_alone(tmp_path / "t.vst", many_threads)
    lines = vestige("info", path).out.splitlines()
    at = lines.index("  threads  51")
    assert len(lines) - at == 1 + 20 + 1
    assert lines[-1].endswith(" records  in 31 more threads; -n lists more")
    everything = vestige("info", path, "-n", "100").out.splitlines()
    assert len(everything) - everything.index("  threads  51") == 1 + 51
    counts = [int(line.split()[1].replace(",", "")) for line in everything[-51:]]
    shown = [int(line.split()[1].replace(",", "")) for line in lines[at + 1 : -1]]
    assert sorted(shown) == sorted(counts)[-20:]
    assert int(lines[-1].split()[0].replace(",", "")) == sum(counts) - sum(shown)


def test_of_many_processes_the_first_are_listed(tmp_path):
    family(tmp_path, *range(2000, 2030))
    text = vestige("info", tmp_path / "t.vst").out
    assert text.count("\n  process ") == 20
    assert text.splitlines()[-1].startswith("and 11 more processes, ")
    assert vestige("info", tmp_path / "t.vst", "-n", "31").out.count("\n  process ") == 31
