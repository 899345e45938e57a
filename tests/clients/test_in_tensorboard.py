"""Our traces in TensorBoard: the plugin shows the same for our traces and for traces of torch's profiler of the same
training, and reports no problem.
"""

import shutil

import pytest

from .conftest import RECORDED, document, only
from .tensorboard_server import Server

pytest.importorskip("torch_tb_profiler")

WORKERS = ["worker0", "worker1"]


@pytest.fixture(scope="module")
def server(training, lightning, plain, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    runs = {"torch": training / "torch", "vestige": training / "vestige", "lightning": lightning, "plain": plain}
    for run, source in runs.items():
        shutil.copytree(source, folder / run)
    only(folder / "torch", "worker1.*").unlink()  # the plugin starts a process for each file
    with Server(folder) as server:
        yield server


def ask(server, run, route, worker=WORKERS[0], **arguments):
    return server.ask(route, run=run, worker=worker, span="1", **arguments)


def calls(server, run, worker=WORKERS[0], **arguments):
    """Returns {(operator, other keys of a table's row): calls}."""
    rows = ask(server, run, "operation/table", worker, **arguments)["data"]
    return {(row["name"], row.get("input_shape")): row["calls"] for row in rows}


def test_every_run_is_found(server):
    assert server.runs == ["lightning", "plain", "torch", "vestige"]


def test_all_views_are_there(server):
    views = ["Overview", "Operator", "Trace", "Distributed", "Memory", "Module"]
    assert server.ask("views", run="vestige") == server.ask("views", run="torch") == views


def test_every_rank_is_a_worker(server):
    for view in ("Overview", "Operator", "Trace", "Memory", "Module"):
        assert server.ask("workers", run="vestige", view=view) == WORKERS


def test_the_overview_shows_the_recorded_steps(server):
    for worker in WORKERS:
        overview = ask(server, "vestige", "overview", worker)
        assert [row[0] for row in overview["steps"]["rows"]] == [str(step) for step in RECORDED]
        costs = {row["name"]: row["value"] for row in overview["performance"][0]["children"]}
        assert costs["CPU Exec"] > 0
        assert costs["Communication"] > 0


@pytest.mark.parametrize("group_by", ["Operation", "OperationAndInputShape"])
def test_operators_and_their_calls_are_those_that_torch_counts(server, group_by):
    for worker in WORKERS:
        ours = calls(server, "vestige", worker, group_by=group_by)
        assert ours == calls(server, "torch", group_by=group_by)
        assert ours


def test_memory_is_shown_by_operator_over_time_and_by_event(server):
    def allocating(run):
        rows = ask(server, run, "memory")["rows"]["CPU"]
        return {name: (count, allocations) for name, count, _, _, allocations, *_ in rows if allocations}

    assert allocating("vestige") == allocating("torch")
    curve = ask(server, "vestige", "memory_curve")["rows"]["CPU"]
    assert max(allocated for _, allocated, _ in curve) > 0
    assert ask(server, "vestige", "memory_events")["rows"]["CPU"]


def test_modules_are_shown_as_they_lie_in_each_other(server):
    def tree(modules):
        return sorted((m["name"], m["occurences"], m["operators"], tree(m["children"])) for m in modules)

    ours = tree(ask(server, "vestige", "module")["data"])
    assert ours == tree(ask(server, "torch", "module")["data"])
    assert [name for name, *_ in ours] == ["DistributedDataParallel_0"]


def test_the_timeline_gets_the_whole_file(server, training):
    assert ask(server, "vestige", "trace", "worker1") == document(only(training / "vestige", "worker1.*"))


def test_steps_that_a_callback_counts_are_in_the_overview(server):
    (worker,) = server.ask("workers", run="lightning", view="Overview")
    overview = ask(server, "lightning", "overview", worker)
    assert [row[0] for row in overview["steps"]["rows"]] == [str(step) for step in RECORDED]
    assert calls(server, "lightning", worker)["aten::addmm", None] == len(RECORDED)


def test_a_program_without_torch_has_an_overview_and_a_timeline(server):
    assert server.ask("views", run="plain") == ["Overview", "Operator", "Trace"]
    assert server.ask("overview", run="plain", worker="demo", span="1")["steps"]["rows"]
    names = {event["name"] for event in server.ask("trace", run="plain", worker="demo", span="1")["traceEvents"]}
    assert "Python GC" in names


def test_the_plugin_complains_about_nothing(server):
    assert server.complaints() == []
