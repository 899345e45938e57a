"""Our traces in Holistic Trace Analysis: ranks, steps, the call graph, and every analysis that works without a GPU.

HTA rounds times to whole microseconds unless told not to. Shorter spans then end before they begin, and its call graph
refuses them, those of torch as well.
"""

import inspect
from collections import Counter
from math import inf

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
    """How often each name of a category is there."""
    frame = analysis.t.get_trace(rank)
    table = analysis.t.symbol_table.get_sym_table()
    chosen = frame[frame["cat"] == analysis.t.symbol_table.get_sym_id_map()[category]]
    return Counter(table[name] for name in chosen["name"])


def check_call_graph(analysis, rank, path):
    """HTA finds by time alone the callers that we recorded as ids."""
    events = document(path)["traceEvents"]
    graph = CallGraph(analysis.t, ranks=[rank])
    parents = {int(index): int(node.parent) for index, node in graph.rank_to_nodes[rank].items()}

    def caller(index):
        index = parents[index]
        while index >= 0 and events[index]["cat"] != "python_function":
            index = parents[index]
        return events[index]["args"]["Python id"] if index >= 0 else None

    calls = [index for index in parents if index >= 0 and events[index]["cat"] == "python_function"]
    assert len(calls) > 100
    begins = {events[index]["args"]["Python id"]: events[index]["ts"] for index in calls}
    ends = {events[index]["args"]["Python id"]: events[index]["ts"] + events[index]["dur"] for index in calls}
    slips = 0
    for index in calls:
        begin, end = events[index]["ts"], events[index]["ts"] + events[index]["dur"]
        found, recorded = caller(index), events[index]["args"]["Python parent id"]
        if found != recorded and ends.get(found, inf) - begin < 0.001:
            # HTA names a caller that had ended: a call began in the tick in which its sibling ended, and HTA adds
            # times as floats. What we recorded must then be true by time as well.
            slips += 1
            assert begins[recorded] <= begin and end - ends[recorded] < 0.001
        else:
            assert found == recorded
    assert slips < 0.01 * len(calls)
    return graph


def test_ranks_are_found(ours):
    assert sorted(ours.t.get_ranks()) == [0, 1]


def test_steps_are_found(ours, training):
    assert list(ours.get_profiler_steps()) == RECORDED
    assert list(analyse(training / "vestige").get_profiler_steps()) == RECORDED[:-1]  # its default


def test_steps_that_a_callback_counts_are_found(lightning):
    analysis = analyse(lightning, include_last_profiler_step=True)
    assert list(analysis.get_profiler_steps()) == RECORDED
    check_call_graph(analysis, 0, only(lightning, "*.json"))


def test_files_load_with_times_rounded_as_well(training):
    analysis = TraceAnalysis(trace_dir=str(training / "vestige"), include_last_profiler_step=True)
    assert sorted(analysis.t.get_ranks()) == [0, 1]
    assert list(analysis.get_profiler_steps()) == RECORDED


def test_operators_and_annotations_are_those_that_torch_records(ours, torchs):
    for rank in range(2):
        assert names(ours, rank, "cpu_op") == names(torchs, rank, "cpu_op")
        annotations = names(ours, rank, "user_annotation")
        del annotations["## process_group:init ##"]  # the execution trace's; torch begins it and never ends it
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
def test_the_call_graph_has_every_call_below_its_caller(ours, training, rank):
    graph = check_call_graph(ours, rank, only(training / "vestige", f"worker{rank}.*"))
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
        except Exception as error:  # most want kernels of a GPU
            return type(error), str(error)

    assert outcome(ours) == outcome(torchs)


def test_a_program_without_torch_has_a_call_graph(plain):
    analysis = analyse(plain)
    assert analysis.t.get_ranks() == [0]
    assert list(analysis.get_profiler_steps()) == []
    check_call_graph(analysis, 0, only(plain, "*"))
