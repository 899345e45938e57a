"""Our traces in Holistic Trace Analysis: ranks, steps, the call graph, and every analysis that works without a GPU.

By default, HTA rounds times to whole microseconds. Shorter spans then end before they begin, and its call graph refuses
them, in torch's traces, too.
"""

import inspect
import json
from collections import Counter
from decimal import Decimal

import pytest

from .conftest import RECORDED, document, only

pytest.importorskip("hta")

import pandas
from hta.common.trace import add_fwd_bwd_links
from hta.common.trace_call_graph import CallGraph
from hta.trace_analysis import TraceAnalysis

ANALYSES = [
    name for name in dir(TraceAnalysis) if name.startswith("get_") and name != "get_frequent_cuda_kernel_sequences"
]


def analyse(folder, **options):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HTA_DISABLE_NS_ROUNDING", "1")
        return TraceAnalysis(trace_dir=str(folder), **options)


@pytest.fixture(scope="module")
def ours(training):
    return analyse(training / "vestige", include_last_profiler_step=True)


@pytest.fixture(scope="module")
def torchs(training):
    return analyse(training / "torch", include_last_profiler_step=True)


def names(analysis, rank, category):
    """Returns how often each name of a category occurs."""
    frame = analysis.t.get_trace(rank)
    table = analysis.t.symbol_table.get_sym_table()
    chosen = frame[frame["cat"] == analysis.t.symbol_table.get_sym_id_map()[category]]
    return Counter(table[name] for name in chosen["name"])


def whole_nanoseconds(path, folder):
    """Copies the spans of a file for HTA to read, their times in whole nanoseconds. HTA adds microseconds as floats,
    which may be off by a nanosecond. If a span begins in the tick in which another ends, HTA would see them overlap,
    and would put later spans below the wrong caller.
    """
    trace = document(path, parse_float=Decimal)
    spans = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    for span in spans:
        span["ts"], span["dur"] = int(span["ts"] * 1000), int(span["dur"] * 1000)
    trace["traceEvents"] = spans
    (folder / "trace.json").write_text(json.dumps(trace, default=float))
    return spans


def check_call_graph(path, folder):
    """HTA finds callers by time alone; we recorded them as ids."""
    events = whole_nanoseconds(path, folder)
    analysis = analyse(folder, include_last_profiler_step=True)
    (rank,) = analysis.t.get_ranks()
    graph = CallGraph(analysis.t, ranks=[rank])
    parents = {int(index): int(node.parent) for index, node in graph.rank_to_nodes[rank].items()}

    def caller(index):
        index = parents[index]
        while index >= 0 and events[index]["cat"] != "python_function":
            index = parents[index]
        return events[index]["args"]["Python id"] if index >= 0 else None

    calls = [index for index in parents if index >= 0 and events[index]["cat"] == "python_function"]
    assert len(calls) > 100
    ends = {events[index]["args"]["Python id"]: events[index]["ts"] + events[index]["dur"] for index in calls}
    for index in calls:
        found, recorded = caller(index), events[index]["args"]["Python parent id"]
        if found != recorded:
            # HTA puts a call of duration 0 below a sibling that ended in the same tick.
            assert events[index]["dur"] == 0 and ends[found] == events[index]["ts"], (found, recorded)
    return graph


def test_ranks_are_found(ours):
    assert sorted(ours.t.get_ranks()) == [0, 1]


def test_steps_are_found(ours, training):
    assert list(ours.get_profiler_steps()) == RECORDED
    assert list(analyse(training / "vestige").get_profiler_steps()) == RECORDED[:-1]  # its default


def test_steps_that_a_callback_counts_are_found(lightning, tmp_path):
    analysis = analyse(lightning, include_last_profiler_step=True)
    assert list(analysis.get_profiler_steps()) == RECORDED
    check_call_graph(only(lightning, "*.json"), tmp_path)


def test_files_load_with_times_rounded_as_well(training):
    analysis = TraceAnalysis(trace_dir=str(training / "vestige"), include_last_profiler_step=True)
    assert sorted(analysis.t.get_ranks()) == [0, 1]
    assert list(analysis.get_profiler_steps()) == RECORDED


def test_operators_and_annotations_are_those_that_torch_records(ours, torchs):
    for rank in range(2):
        assert names(ours, rank, "cpu_op") == names(torchs, rank, "cpu_op")
        annotations = names(ours, rank, "user_annotation")
        del annotations["## process_group:init ##"]  # the execution trace's span; torch begins it and never ends it
        assert annotations == names(torchs, rank, "user_annotation")


def test_operators_have_the_shapes_that_torch_records(ours, torchs):
    def shapes(analysis):
        frame = analysis.t.get_trace(0)
        table = analysis.t.symbol_table.get_sym_table()
        frame = frame[frame["cat"] == analysis.t.symbol_table.get_sym_id_map()["cpu_op"]]
        columns = zip(frame["name"], frame["input_dims"], frame["input_type"], frame["input_strides"])
        return Counter((table[name], *map(str, values)) for name, *values in columns)

    assert shapes(ours) == shapes(torchs)


@pytest.mark.parametrize("rank", [0, 1])
def test_the_call_graph_has_every_call_below_its_caller(training, tmp_path, rank):
    graph = check_call_graph(only(training / "vestige", f"worker{rank}.*"), tmp_path)
    assert "main" in set(graph.mapping["label"])


def test_forward_and_backward_operators_are_linked(training):
    def links(folder):
        events = document(only(folder, "worker0.*"))["traceEvents"]
        frame = pandas.DataFrame(events).reset_index()
        add_fwd_bwd_links(frame)
        linked = frame[frame["fwdbwd"] == 0]
        return Counter((events[i]["name"], events[k]["name"]) for i, k in zip(linked["index"], linked["fwdbwd_index"]))

    assert links(training / "vestige") == links(training / "torch")


@pytest.mark.parametrize("analysis", ANALYSES)
def test_an_analysis_answers_as_it_does_of_torchs_trace(ours, torchs, analysis):
    def outcome(subject):
        method = getattr(subject, analysis)
        options = {"visualize": False} if "visualize" in inspect.signature(method).parameters else {}
        try:
            return type(method(**options))
        except Exception as error:  # most need kernels of a GPU
            return type(error), str(error)

    assert outcome(ours) == outcome(torchs)


def test_a_program_without_torch_has_a_call_graph(plain, tmp_path):
    analysis = analyse(plain)
    assert analysis.t.get_ranks() == [0]
    assert list(analysis.get_profiler_steps()) == []
    check_call_graph(only(plain, "*"), tmp_path)
