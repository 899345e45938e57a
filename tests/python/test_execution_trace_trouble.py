"""The execution trace observer with torch, in difficult cases: threads, forks, errors, unusual tensors, and profiles
that begin and end during the observation.
"""

import gc
import os
import threading

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed for this Python")

import vestige
from graphs import PROCESS, THREAD, attribute, children, named, nodes_of, one, rf_ids, root_of, timeline_rf_ids
from vestige import ExecutionTraceObserver, profile, record_function, schedule

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.usefixtures("no_environment")]


@pytest.fixture
def no_environment(monkeypatch):
    for name in list(os.environ):
        if "EXECUTION_TRACE" in name:
            monkeypatch.delenv(name)


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "t.json")


def names(nodes):
    return [node["name"] for node in nodes if node["name"] not in (PROCESS, THREAD)]


def observed(path, work):
    observer = ExecutionTraceObserver().register_callback(path)
    observer.start()
    try:
        work()
    finally:
        observer.stop()
        observer.unregister_callback()
    nodes = nodes_of(path)
    root_of(nodes)
    return nodes


# ---- ids ---------------------------------------------------------------------


def train(net):
    loss = net(torch.randn(2, 8)).square().mean()
    loss.backward()


def on_threads(count, work):
    threads = [threading.Thread(target=work) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@pytest.mark.parametrize("threads", [1, 8])
@pytest.mark.parametrize("plan", [{"wait": 0, "warmup": 0, "active": 2}, {"wait": 1, "warmup": 1, "active": 2}])
def test_ids_are_the_timelines_on_threads_and_over_repeated_cycles(path, tmp_path, threads, plan):
    net = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 4))
    observer = ExecutionTraceObserver().register_callback(path)
    cycle = schedule(**plan, repeat=2)
    with profile(
        with_stack=False, acc_events=True, schedule=cycle, execution_trace_observer=observer, record_shapes=True
    ) as prof:
        for _ in range(9):
            with record_function("step"):
                on_threads(threads, lambda: train(net)) if threads > 1 else train(net)
            prof.step()
    prof.export_chrome_trace(str(tmp_path / "timeline.json"))
    nodes = nodes_of(path)
    root_of(nodes)
    ids = rf_ids(nodes)
    assert ids == timeline_rf_ids(tmp_path / "timeline.json")
    assert 0 not in ids and len(set(ids)) == len(ids)
    assert len(named(nodes, "aten::linear")) == 8 * threads
    for node in nodes:
        if node["name"] == "AddmmBackward0":
            assert attribute(node, "fw_tid") and attribute(node, "seq_id") >= 0


# ---- profiles that come and go -----------------------------------------------


def test_nothing_is_lost_where_a_profile_begins_and_ends_while_it_runs(path):
    observer = ExecutionTraceObserver().register_callback(path)
    shared = torch.ones(2)
    observer.start()
    with record_function("before", shared):
        pass
    for index in range(2):
        with profile(with_stack=False) as prof, record_function(f"during {index}"):
            torch.neg(shared)
        with record_function(f"between {index}"):
            torch.abs(shared)
    assert "during 1" in [row.key for row in prof.key_averages()]
    observer.unregister_callback()
    nodes = nodes_of(path)
    root_of(nodes)
    scopes = [name for name in names(nodes) if not name.startswith("aten")]
    assert sorted(scopes) == ["before", "between 0", "between 1", "during 0", "during 1"]
    tensors = {tuple(node["inputs"]["values"][0]) for node in nodes if node["name"] in ("aten::neg", "aten::abs")}
    assert len(tensors) == 1
    assert len(named(nodes, THREAD)) == 1


def test_it_can_be_unregistered_while_a_profile_goes_on(path, tmp_path):
    with profile(with_stack=False) as prof:
        found = []
        for index in range(3):
            observer = ExecutionTraceObserver().register_callback(path)
            observer.start()
            with record_function(f"part {index}"):
                torch.ones(1)
            observer.unregister_callback()
            found.append([name for name in names(nodes_of(path)) if name.startswith("part")])
        with record_function("part 3"):
            pass
    assert found == [["part 0"], ["part 1"], ["part 2"]]
    assert {"part 0", "part 3"} <= {row.key for row in prof.key_averages()}
    assert os.listdir(tmp_path) == ["t.json"]


def test_a_profile_that_is_refused_leaves_the_observer_as_it_was(path):
    with profile(with_stack=False):
        observer = ExecutionTraceObserver().register_callback(path)
        with pytest.raises(RuntimeError, match="already running"):
            profile(execution_trace_observer=observer).start()
        assert not observer.is_running()
        observer.start()
        torch.ones(1)
        observer.cleanup()
    assert "aten::ones" in names(nodes_of(path))


# ---- misuse ------------------------------------------------------------------


def test_a_second_observer_is_refused(path, tmp_path):
    first = ExecutionTraceObserver().register_callback(path)
    assert first.register_callback(str(tmp_path / "other.json")) is first
    assert first.get_output_file_path() == path
    with pytest.raises(RuntimeError, match="registered already.*t.json"):
        ExecutionTraceObserver().register_callback(str(tmp_path / "second.json"))
    first.unregister_callback()
    second = ExecutionTraceObserver().register_callback(str(tmp_path / "second.json"))
    assert second.is_registered and not first.is_registered
    second.cleanup()


def test_any_order_of_calls_ends_in_a_whole_file(path):
    observer = ExecutionTraceObserver()
    assert observer.get_output_file_path() is None
    observer.start(), observer.stop(), observer.cleanup(), observer.unregister_callback()
    assert not os.path.exists(path)
    observer.register_callback(path)
    observer.stop()
    observer.start(), observer.start()
    torch.ones(1)
    assert observer.is_running() and observer.is_registered
    observer.cleanup()  # before stop()
    observer.stop(), observer.cleanup()
    assert not observer.is_running() and not observer.is_registered
    nodes = nodes_of(path)
    root_of(nodes)
    assert "aten::ones" in names(nodes)


def test_an_observer_that_is_dropped_while_it_runs_writes_its_file(path):
    observer = ExecutionTraceObserver().register_callback(path)
    observer.start()
    torch.ones(1)
    del observer
    gc.collect()
    assert "aten::ones" in names(nodes_of(path))
    assert vestige.torch.adapter._graph[0] == 0


def test_what_cannot_be_written_is_refused_at_once(tmp_path):
    for wrong in (str(tmp_path / "no" / "t.json"), str(tmp_path), "/proc/t.json", "/dev/full/t.json"):
        observer = ExecutionTraceObserver()
        with pytest.raises(OSError, match=wrong):
            observer.register_callback(wrong)
        assert not observer.is_registered
    ExecutionTraceObserver().register_callback(str(tmp_path / "t.json")).cleanup()
    with pytest.raises(TypeError, match="no stop.*and no cleanup"):
        profile(execution_trace_observer=type("Half", (), {"start": print})())


def test_profile_drives_whatever_has_three_methods():
    class Driven:
        calls = []

        def start(self):
            self.calls.append("start")

        def stop(self):
            self.calls.append("stop")

        def cleanup(self):
            self.calls.append("cleanup")

    with profile(
        with_stack=False, schedule=schedule(wait=1, warmup=0, active=1, repeat=2), execution_trace_observer=Driven()
    ) as prof:
        for _ in range(6):
            prof.step()
    assert Driven.calls == ["start", "stop", "start", "stop", "cleanup"]


# ---- odd operators -----------------------------------------------------------


class Wrapped(torch.Tensor):
    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        return function(*(arg.inner if isinstance(arg, Wrapped) else arg for arg in args), **(kwargs or {}))


def wrapped(inner):
    made = torch.Tensor._make_wrapper_subclass(Wrapped, inner.shape, dtype=inner.dtype)
    made.inner = inner
    return made


def test_tensors_without_storage_are_told_of(path):
    from torch._subclasses.fake_tensor import FakeTensorMode

    def work():
        sparse = torch.eye(3).to_sparse()
        torch.add(sparse, sparse)
        torch.eye(3).to_sparse_csr().abs()
        torch.ones(2, 3, device="meta").sin()
        wrapped(torch.ones(5)).exp()
        torch.vmap(torch.cos)(torch.ones(2, 3))
        torch.func.grad(lambda x: x.tan().sum())(torch.ones(4))
        with FakeTensorMode():
            torch.ones(7).sinh()
        torch.nn.functional.linear(torch.ones(1, 2), torch.ones(3, 2), None)
        torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.qint8)
        torch.ones(2) * (1 + 2j)

    nodes = observed(path, work)
    added = named(nodes, "aten::add")[0]
    assert added["inputs"]["shapes"][:2] == [[3, 3]] * 2 and added["inputs"]["values"][0][1] == 0
    assert named(nodes, "aten::sin")[0]["inputs"]["values"][0][5] == "meta"
    assert named(nodes, "aten::exp")[0]["inputs"]["shapes"] == [[5]]
    for name in ("aten::abs", "aten::cos", "aten::tan", "aten::sinh", "aten::quantize_per_tensor", "aten::mul"):
        assert named(nodes, name), name


def test_an_operator_that_raises_is_a_node_without_outputs(path):
    def work():
        with record_function("around"):
            with pytest.raises(RuntimeError):
                torch.mm(torch.ones(2, 3), torch.ones(2, 3))
            torch.ones(1)

    nodes = observed(path, work)
    node = one(nodes, "aten::mm")
    assert node["outputs"]["values"] == [] and node["inputs"]["shapes"][0] == [2, 3]
    around = one(nodes, "around")
    assert node in children(nodes, around) and [n["ctrl_deps"] for n in named(nodes, "aten::ones")][-1] == around["id"]


def test_names_and_texts_of_any_bytes_make_valid_json(path):
    odd = 'a "quoted"\n\tback\\slash \x01 \udcff é 字 </script>'

    def work():
        with record_function(odd, odd):
            handle = torch.autograd._record_function_with_args_enter('q"\n\\', 'v"\n\\', [1], (2,))
            torch.autograd._record_function_with_args_exit(handle)

    nodes = observed(path, work)
    scope = next(node for node in nodes if node["name"].startswith("a "))
    assert scope["name"].startswith('a "quoted"\n\tback\\slash \x01 ') and scope["name"].endswith(" é 字 </script>")
    assert scope["inputs"]["values"][0] == scope["name"]
    assert one(nodes, 'q"\n\\')["inputs"]["values"] == ['v"\n\\', [1], [2]]


def test_many_values_and_long_texts_are_whole(path):
    u = torch.ones(3)
    text = "x" * 100_000

    def work():
        torch.cat([u] * 4000)
        with record_function("long", text, list(range(3000)), [[[1], []], (2.5, None)]):
            pass

    nodes = observed(path, work)
    (values,) = one(nodes, "aten::cat")["inputs"]["values"][:1]
    assert len(values) == 4000 and all(value == values[0] for value in values)
    assert one(nodes, "long")["inputs"]["values"] == [text, list(range(3000)), [[[1], []], [2.5, "<None>"]]]


# ---- in torch's place --------------------------------------------------------


def test_install_puts_it_in_torchs_place(tmp_path):
    theirs = torch.profiler.ExecutionTraceObserver
    vestige.install()
    try:
        ours = torch.profiler.ExecutionTraceObserver
        assert ours is ExecutionTraceObserver and torch.profiler.profiler.ExecutionTraceObserver is ours
        observer = ours().register_callback(str(tmp_path / "i.json"))
        with torch.profiler.profile(execution_trace_observer=observer) as prof:
            with torch.profiler.record_function("## TEST ##", "1, 2"):
                torch.ones(1)
        prof.export_chrome_trace(str(tmp_path / "timeline.json"))
    finally:
        vestige.uninstall()
    assert torch.profiler.ExecutionTraceObserver is theirs
    nodes = nodes_of(tmp_path / "i.json")
    assert one(nodes, "## TEST ##")["inputs"]["values"] == ["1, 2"]
    assert rf_ids(nodes) == timeline_rf_ids(tmp_path / "timeline.json")


def test_a_forked_child_may_observe_by_itself(path, tmp_path):
    observer = ExecutionTraceObserver().register_callback(path)
    observer.start()
    torch.ones(1)
    child = os.fork()
    if child == 0:
        try:
            assert not observer.is_running() and not observer.is_registered
            own = ExecutionTraceObserver().register_callback(str(tmp_path / "child.json"))
            own.start()
            torch.ones(2)
            own.unregister_callback()
            os._exit(0)
        except BaseException:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    torch.ones(3)
    observer.unregister_callback()
    made = [[node["inputs"]["values"][0] for node in named(nodes_of(name), "aten::ones")]
            for name in (path, tmp_path / "child.json")]  # fmt: skip
    assert made == [[[1], [3]], [[2]]]
