"""--align: traces whose clocks disagree, brought together by the spans they share."""

import json
import re

import pytest

from traces import patch, record, steps, totals, trace_id
from vestige import Trace, record_function
from vestige._core import export_traces

pytestmark = pytest.mark.any_python

HOUR = 3_600_000_000_000


def share(path, *, pid, shift_ns=0):
    """Copies a recording as if another machine with a wrong clock had made it."""
    source = path.with_name("source.vst")
    if not source.exists():
        record(source, steps(20, "barrier"))
    path.write_bytes(source.read_bytes())
    return patch(path, shift_ns=shift_ns, pid=pid, trace_id=f"{pid:032x}")


def ends(path, pid):
    """Returns when the barriers of a process end, in an exported document."""
    document = json.loads(path.read_bytes())
    events = [e for e in document["traceEvents"] if e.get("pid") == pid and e["name"] == "barrier"]
    return [round(event["ts"] * 1000 + event["dur"] * 1000) for event in events]


def export(workplace, *args):
    return workplace.vestige("export", *args, "-o", "all.json", "--force")


@pytest.mark.parametrize("shift", [HOUR, -3_200_000, 0])
def test_a_clock_that_is_off_is_put_right(workplace, shift):
    share(workplace.path / "a.vst", pid=10)
    share(workplace.path / "b.vst", pid=11, shift_ns=shift)
    assert export(workplace, "a.vst", "b.vst").stdout == ""
    apart = [b - a for a, b in zip(ends(workplace.path / "all.json", 10), ends(workplace.path / "all.json", 11))]
    assert all(abs(difference - shift) < 10 for difference in apart)
    result = export(workplace, "a.vst", "b.vst", "--align", "barrier")
    assert result.returncode == 0
    first, second = sorted(result.stdout.splitlines(), key=lambda line: "stays" not in line)
    assert re.fullmatch(r"process \d+ on .*: stays, 20 spans", first)
    assert re.fullmatch(r"process \d+ on .*: [+-][\d.]+ \w+, 20 spans", second)
    together = zip(ends(workplace.path / "all.json", 10), ends(workplace.path / "all.json", 11))
    assert all(abs(b - a) < 10 for a, b in together)


def test_what_counts_is_the_median_of_where_the_spans_end(workplace):
    def work(lengths):
        def run():
            for length in lengths:
                with record_function("barrier"):
                    sum(range(length))

        return run

    patch(record(workplace.path / "a.vst", work([10] * 5), distributedInfo={"rank": 0}), pid=10)
    patch(record(workplace.path / "b.vst", work([10, 10, 10, 10, 200_000]), distributedInfo={"rank": 1}), pid=11)
    assert export(workplace, "a.vst", "b.vst", "--align", "barrier").returncode == 0
    difference = [b - a for a, b in zip(ends(workplace.path / "all.json", 10), ends(workplace.path / "all.json", 11))]
    assert sorted(difference)[2] in (-1, 0, 1)


def test_a_recording_that_lost_its_beginning_is_aligned_by_its_end():
    from vestige.cli.align import _offset

    whole = [0, 10, 25, 31, 60, 62]
    assert _offset(whole, [end + 1000 for end in whole]) == -1000
    assert _offset(whole, [end + 1000 for end in whole[2:]]) == -1000
    assert _offset(whole[3:], [end + 1000 for end in whole]) == -1000
    assert _offset(whole, [end + 1000 for end in whole[:-2]]) == -1000


def test_a_process_without_the_span_moves_with_its_parent(workplace):
    share(workplace.path / "a.vst", pid=10)
    share(workplace.path / "b.vst", pid=11, shift_ns=HOUR)
    parent = {"pid": 11, "tid": None, "time_ns": 0, "how": "spawn"}
    child = record(workplace.path / "b.12.vst", vestige_root=trace_id(workplace.path / "b.vst"), vestige_parent=parent)
    patch(child, pid=12, shift_ns=HOUR)
    result = export(workplace, "a.vst", "b.vst", "--align", "barrier")
    assert result.returncode == 0, result.stderr
    moved = [line for line in result.stdout.splitlines() if "moved together with" in line]
    assert moved == [
        f"process 12 on {_host(child)}: -3600 s, no 'barrier', moved together with its parent or relatives"
    ]


def _host(path):
    return json.loads(Trace(str(path)).metadata()["host_name"])


def test_a_trace_without_the_span_is_named_with_names_that_are_close(workplace):
    share(workplace.path / "a.vst", pid=10)
    patch(record(workplace.path / "b.vst", steps(2, "barriers"), distributedInfo={"rank": 3}), pid=11)
    result = export(workplace, "a.vst", "b.vst", "--align", "barrier")
    assert result.returncode == 2
    message = f"b.vst: no span 'barrier' to align on (rank 3 on {_host(workplace.path / 'b.vst')})"
    assert result.stderr.startswith(f"vestige: {message}; did you mean 'barriers'")
    assert not (workplace.path / "all.json").exists()


def test_export_aligns_as_merge_does(workplace):
    share(workplace.path / "a.vst", pid=10)
    share(workplace.path / "b.vst", pid=11, shift_ns=HOUR)
    result = workplace.vestige("export", "a.vst", "b.vst", "-o", "x.json", "--align", "barrier")
    assert result.returncode == 0
    assert all(abs(a - b) < 10 for a, b in zip(*(ends(workplace.path / "x.json", pid) for pid in (10, 11))))


# ---- what it is built of -----------------------------------------------


class Worker:
    def step(self):
        return len("x")


def test_spans_are_found_by_every_form_of_their_name(tmp_path):
    def work():
        with record_function("step"):
            pass
        Worker().step()
        Worker().step()

    trace = Trace(str(record(tmp_path / "t.vst", work)))
    shown = next(name for name, *_ in totals(trace) if name.endswith(("Worker.step", "): step")))
    assert len(trace.spans("step")) == 1  # the annotation is named "step"; the function's name only contains the word
    assert len(trace.spans(shown)) == 2
    assert len(trace.spans("<built-in function len>")) == len(trace.spans("len")) == 2
    assert trace.spans("tep") == trace.spans("") == []
    assert {"step", "len", "work"} <= trace.names()
    if "Worker" in shown:
        assert len(trace.spans("Worker.step")) == 2


def test_spans_are_the_first_so_many_in_the_order_of_their_ends(tmp_path):
    trace = Trace(str(record(tmp_path / "t.vst", steps(1000))))
    all_of_them = trace.spans("step")
    assert len(all_of_them) == 1000
    assert all_of_them == sorted(all_of_them, key=lambda span: span[1])
    assert trace.spans("step", limit=7) == all_of_them[:7]
    for limit in (0, -1, 10**9):
        with pytest.raises(ValueError, match="limit must be"):
            trace.spans("step", limit=limit)


def test_an_offset_moves_everything(tmp_path):
    trace = Trace(str(record(tmp_path / "t.vst", steps(2))))
    before, start = trace.spans("step"), trace.info()["start_ns"]
    trace.set_offset(-5_000)
    assert trace.spans("step") == [(a - 5_000, b - 5_000) for a, b in before]
    assert trace.info()["start_ns"] == start - 5_000
    trace.set_offset(0)
    assert trace.spans("step") == before
    for offset in (2**62, -(2**62)):
        with pytest.raises(ValueError):
            trace.set_offset(offset)
    with pytest.raises(OverflowError):
        trace.set_offset(2**70)
    export_traces([trace], str(tmp_path / "t.json"))
