"""The execution trace observer with torch: torch 2.13's own tests of its observer, under their names, and cases that
fail with torch's observer.
"""

import glob
import os
import sys

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed for this Python")

from torch.autograd import _record_function_with_args_enter, _record_function_with_args_exit

from graphs import ATTRIBUTES, attribute, named, nodes_of, one, read, rf_ids, root_of, timeline_rf_ids
from vestige import ExecutionTraceObserver, profile, record_function, schedule

pytestmark = pytest.mark.filterwarnings("ignore")
NONE = float("inf"), float("-inf"), float("nan")


def payload():
    """The work of torch's own tests."""
    u = torch.randn(3, 4, 5, requires_grad=True)
    with record_function("## TEST 1 ##", "1, 2, 3"):
        handle = _record_function_with_args_enter(
            "## TEST 2 ##", 1, False, 2.5, [u, u], (u, u), "hello", u, *NONE, None
        )
        x = torch.randn(10, 10, requires_grad=True)
        y = torch.randn(10, 10, requires_grad=True)
        z = x + y + x * y + x * y
        z.backward(z)
        torch.nn.functional.gelu(torch.randn(2))
        _record_function_with_args_exit(handle)


def loops(nodes):
    return [node["name"] for node in nodes if node["name"].startswith("## LOOP ")]


def run_loops(prof, count=10, work=payload):
    for index in range(count):
        with record_function(f"## LOOP {index} ##"):
            work()
        prof.step()


@pytest.fixture(autouse=True)
def no_environment(monkeypatch):
    for name in list(os.environ):
        if "EXECUTION_TRACE" in name:
            monkeypatch.delenv(name)


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "t.et.json")


def skipping():
    return schedule(skip_first=3, wait=1, warmup=1, active=2, repeat=1)


def same_ids(prof, nodes, tmp_path):
    timeline = str(tmp_path / "timeline.json")
    prof.export_chrome_trace(timeline)
    ids = rf_ids(nodes)
    assert ids == timeline_rf_ids(timeline)
    assert ids and 0 not in ids and len(set(ids)) == len(ids)
    return ids


# ---- torch's own tests -------------------------------------------------------


def test_execution_trace_with_kineto(path, tmp_path):
    ready = []
    observer = ExecutionTraceObserver().register_callback(path)
    with profile(
        with_stack=False, schedule=skipping(), on_trace_ready=ready.append, execution_trace_observer=observer
    ) as prof:
        run_loops(prof)
        assert prof.execution_trace_observer.get_output_file_path() == path
    nodes = nodes_of(path)
    root_of(nodes)
    assert len(ready) == 1
    assert loops(nodes) == ["## LOOP 5 ##", "## LOOP 6 ##"]
    same_ids(prof, nodes, tmp_path)
    step = one(nodes, "ProfilerStep#5")
    assert one(nodes, "## LOOP 5 ##")["ctrl_deps"] == step["id"]


def test_execution_trace_env_enabled_with_kineto(monkeypatch, tmp_path):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setenv("ENABLE_PYTORCH_EXECUTION_TRACE", "1")
    monkeypatch.setenv("ENABLE_PYTORCH_EXECUTION_TRACE_EXTRAS", "1")
    before = set(loaded_kernels())
    with profile(schedule=skipping()) as prof:
        run_loops(prof)
    observer = prof.execution_trace_observer
    path = observer.get_output_file_path()
    folder = observer.get_resources_dir()
    assert os.path.dirname(path) == str(tmp_path) and os.path.isdir(folder)
    assert set(os.listdir(folder)) == before
    nodes = nodes_of(path)
    root_of(nodes)
    assert len(loops(nodes)) == 2
    same_ids(prof, nodes, tmp_path)


def test_execution_trace_alone(tmp_path):
    path = str(tmp_path / "t.et.json.gz")
    observer = ExecutionTraceObserver().register_callback(path)
    observer.start()
    for index in range(5):
        with record_function(f"## LOOP {index} ##"):
            payload()
    observer.stop()
    assert observer.get_output_file_path() == path
    observer.unregister_callback()
    document = read(path)
    nodes = document["nodes"]
    root_of(nodes)
    assert document["schema"] == "1.1.1-chakra.0.0.4" and document["pid"] == os.getpid()
    assert document["start_ts"] <= document["finish_ts"]
    assert len(loops(nodes)) == 5
    assert os.listdir(tmp_path) == ["t.et.json.gz"]
    for node in nodes:
        assert [one["name"] for one in node["attrs"]][:10] == [*ATTRIBUTES, "tensor_range"]
    check_values(named(nodes, "## TEST 2 ##")[0], nodes)


def check_values(node, nodes):
    values, types = node["inputs"]["values"], node["inputs"]["types"]
    tensor = values[6]
    assert len(tensor) == 6 and tensor[2:] == [0, 60, 4, "cpu"]
    assert values[:3] == [1, False, 2.5] and values[3] == values[4] == [tensor, tensor]
    assert values[5] == "hello" and values[7:] == ["inf", "-inf", "nan", "<None>"]
    pair = "[Tensor(float),Tensor(float)]"
    assert types[:6] == ["Int", "Bool", "Double", f"GenericList{pair}", f"Tuple{pair}", "String"]
    assert types[6:] == ["Tensor(float)", "Double", "Double", "Double", "None"]
    assert node["inputs"]["shapes"][3] == [[3, 4, 5]] * 2 and node["inputs"]["strides"][6] == [20, 5, 1]
    made = [other for other in named(nodes, "aten::randn") if other["outputs"]["values"] == [tensor]]
    assert made and attribute(made[0], "op_schema").startswith("aten::randn(SymInt[] size")
    assert attribute(node, "scope") == 7 and attribute(node, "op_schema") == ""


def test_execution_trace_env_disabled(monkeypatch):
    monkeypatch.setenv("ENABLE_PYTORCH_EXECUTION_TRACE", "0")
    monkeypatch.setenv("ENABLE_PYTORCH_EXECUTION_TRACE_EXTRAS", "0")
    assert ExecutionTraceObserver.build_execution_trace_obs_from_env() is None
    with profile(record_shapes=True, schedule=skipping()) as prof:
        run_loops(prof)
    assert prof.execution_trace_observer is None


def test_execution_trace_start_stop(path):
    observer = ExecutionTraceObserver().register_callback(path)
    expected = []
    for index in range(10):
        if index in (3, 8):
            observer.start()
        elif index in (5, 9):
            observer.stop()
        if observer.is_running():
            expected.append(f"## LOOP {index} ##")
        with record_function(f"## LOOP {index} ##"):
            payload()
    observer.unregister_callback()
    nodes = nodes_of(path)
    root_of(nodes)
    assert loops(nodes) == expected == [f"## LOOP {index} ##" for index in (3, 4, 8)]


def test_execution_trace_repeat_in_loop(tmp_path):
    found = []
    for index in range(10):
        chosen = index in (3, 4, 6, 8)
        if chosen:
            path = str(tmp_path / f"{index}.json")
            observer = ExecutionTraceObserver().register_callback(path)
            observer.start()
        with record_function(f"## LOOP {index} ##"):
            payload()
        if chosen:
            observer.stop()
            observer.unregister_callback()
            nodes = nodes_of(path)
            root_of(nodes)
            found += loops(nodes)
    assert found == [f"## LOOP {index} ##" for index in (3, 4, 6, 8)]


def test_execution_trace_no_capture(path):
    observer = ExecutionTraceObserver().register_callback(path)
    assert observer.get_output_file_path() == path
    observer.unregister_callback()
    assert [node["id"] for node in nodes_of(path)] == [root_of(nodes_of(path))["id"]]


def test_execution_trace_nested_tensor(path):
    observer = ExecutionTraceObserver().register_callback(path)
    with profile(execution_trace_observer=observer):
        for index in range(3):
            values = torch.rand((8 + index, 4 + index))
            offsets = torch.tensor([0, 2, 4, 6, 8 + index])
            torch.nested.nested_tensor_from_jagged(values, offsets).sin().cos()
        torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(4, 3)]).sin().cos()
    nodes = nodes_of(path)
    root_of(nodes)
    assert len(named(nodes, "aten::cos")) >= 4
    shapes = [node["inputs"]["shapes"][0] for node in named(nodes, "aten::cos")]
    assert [[2, 3], [4, 3]] in shapes


def test_execution_trace_record_integral_tensor_range(path, monkeypatch):
    monkeypatch.setenv("ENABLE_PYTORCH_EXECUTION_TRACE_SAVE_INTEGRAL_TENSOR_RANGE", "1")
    observer = ExecutionTraceObserver().register_callback(path)
    x, y = torch.tensor([[1, 2], [3, 4]]), torch.tensor([[0, 0], [1, 0]])
    with profile(
        schedule=schedule(wait=0, warmup=0, active=1, repeat=1), record_shapes=True, execution_trace_observer=observer
    ) as prof:
        torch.gather(x, 1, y)
        torch.cat([x.t()[1:], torch.empty(0, 2, dtype=torch.long), x.to(torch.uint8)])
        prof.step()
    nodes = nodes_of(path)
    assert attribute(one(nodes, "aten::gather"), "tensor_range") == '{"0":[1,4],"1":[0,1]}'
    assert attribute(one(nodes, "aten::cat"), "tensor_range") == '{"0":[2,4],"2":[1,4]}'


def test_execution_trace_record_integral_tensor_data(path, monkeypatch):
    import numpy

    monkeypatch.setenv("ENABLE_PYTORCH_EXECUTION_TRACE_SAVE_INTEGRAL_TENSOR_DATA", "aten::gather,aten::other")
    observer = ExecutionTraceObserver().register_callback(path)
    observer.set_extra_resource_collection(True)
    x, y = torch.tensor([[1, 2], [3, 4]]), torch.tensor([[0, 1], [0, 0]]).t()
    with profile(
        schedule=schedule(wait=0, warmup=0, active=1, repeat=1), record_shapes=True, execution_trace_observer=observer
    ) as prof:
        torch.gather(x, 1, y)
        prof.step()
    node = one(nodes_of(path), "aten::gather")
    folder = path.replace(".json", "_resources")
    assert observer.get_resources_dir() == folder
    contents = [numpy.fromfile(f"{folder}/nid_{node['id']}_tid_{k}.dat", dtype=numpy.int64).tolist() for k in (0, 1)]
    assert contents == [[1, 2, 3, 4], [0, 0, 1, 0]]
    assert not glob.glob(f"{folder}/rf_*")
    assert node["id"] == 4


# ---- compiled code: what torch runs on a GPU runs here on the CPU ------------


def loaded_kernels():
    cache = getattr(sys.modules.get("torch._inductor.codecache"), "PyCodeCache", None)
    return [os.path.basename(module.__file__) for module in getattr(cache, "modules", ())]


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """A function that is compiled once for all tests, because compiling takes half a minute of CPU time."""
    from torch._inductor import config

    os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(tmp_path_factory.mktemp("inductor"))
    function = torch.compile(lambda a, b: (a.sin() + b * 1111).cos())
    inputs = torch.randn(4, 4), torch.randn(4, 4)
    with config.patch(compile_threads=1, fx_graph_cache=False, fx_graph_remote_cache=False), torch.no_grad():
        function(*inputs)
    yield lambda: function(*inputs)
    del os.environ["TORCHINDUCTOR_CACHE_DIR"]


def test_execution_trace_with_pt2(compiled, path, tmp_path):
    observer = ExecutionTraceObserver().register_callback(path)
    observer.set_extra_resource_collection(True)
    with profile(record_shapes=True, schedule=skipping(), execution_trace_observer=observer) as prof, torch.no_grad():
        run_loops(prof, work=compiled)
    nodes = nodes_of(path)
    root_of(nodes)
    assert loops(nodes) == ["## LOOP 5 ##", "## LOOP 6 ##"]
    graphs = [node for node in nodes if "Call CompiledFxGraph" in node["name"]]
    assert len(graphs) == 2
    same_ids(prof, nodes, tmp_path)


def test_execution_trace_env_enabled_with_pt2(compiled, monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setenv("VESTIGE_EXECUTION_TRACE", "1")
    monkeypatch.setenv("VESTIGE_EXECUTION_TRACE_EXTRAS", "1")
    with profile(record_shapes=True, schedule=skipping()) as prof, torch.no_grad():
        run_loops(prof, work=compiled)
    folder = prof.execution_trace_observer.get_resources_dir()
    assert set(loaded_kernels()) == set(os.listdir(folder)) != set()
    root_of(nodes_of(prof.execution_trace_observer.get_output_file_path()))


def test_triton_fx_graph_with_et(compiled, path):
    """The generated source is among the resources, and all nodes of the graph are in the trace, in order."""
    observer = ExecutionTraceObserver().register_callback(path)
    observer.set_extra_resource_collection(True)
    with profile(execution_trace_observer=observer), torch.no_grad():
        compiled()
    texts = []
    for name in os.listdir(observer.get_resources_dir()):
        with open(os.path.join(observer.get_resources_dir(), name)) as file:
            texts.append(file.read())
    text = next(text for text in texts if 'extern "C"' in text)
    steps = [text.index(step) for step in ("cpp_fused_add_cos_mul_sin", ".sin()", "1111", ".cos()")]
    assert steps == sorted(steps)


def test_a_triton_kernels_launch_is_a_node_with_its_file(path):
    """A launcher reports its kernel like this; running the kernel needs a GPU."""
    u = torch.randn(3, 4)
    observer = ExecutionTraceObserver().register_callback(path)
    told = {
        "kernel_backend": "triton",
        "kernel_file": "/a/b/kernel.py",
        "stream": 7,
        "num_warps": 4,
        "kernel_hash": "h",
    }
    with profile(execution_trace_observer=observer, record_shapes=True):
        torch.ones(1)
        with torch._C._profiler._RecordFunctionFast("triton_poi_fused", (u, 12), told):
            pass
    node = one(nodes_of(path), "triton_poi_fused")
    assert attribute(node, "kernel_backend") == "triton" and attribute(node, "kernel_file") == "kernel.py"
    assert node["inputs"]["types"] == ["Tensor(float)", "Int", "Int"] and node["inputs"]["values"][1:] == [12, 7]
    assert node["outputs"]["values"] == []


# ---- beside torch's own observer, in the same run ----------------------------


class Renamed:
    """Compares values with ids: each id of torch's stands for one id of ours. Doubles must be exactly equal."""

    def __init__(self):
        self.known = {}

    def is_tensor(self, value):
        return isinstance(value, list) and list(map(type, value)) == [int] * 5 + [str]

    def same(self, theirs, ours):
        if self.is_tensor(theirs):
            has_storage = theirs[1] and theirs[3]  # tensors without bytes share one storage in torch's trace
            pairs = [("tensor", theirs[0], ours[0]), *([("storage", theirs[1], ours[1])] if has_storage else [])]
            return theirs[2:] == ours[2:] and all(self.known.setdefault(p[:2], p[2]) == p[2] for p in pairs)
        if isinstance(theirs, list) and isinstance(ours, list):
            return len(theirs) == len(ours) and all(map(self.same, theirs, ours))
        return theirs == (round(ours, 6) if isinstance(ours, float) else ours)


def test_node_for_node_it_is_what_torchs_observer_writes(path, tmp_path):
    net = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.ReLU(), torch.nn.Flatten())
    optimizer = torch.optim.Adam(net.parameters())

    def work():
        optimizer.zero_grad()
        net(torch.randn(2, 3, 8, 8)).log_softmax(1).mean().backward()
        optimizer.step()
        torch.nn.functional.embedding(torch.tensor([1, 2]), torch.randn(4, 3))
        torch.split(torch.arange(10), 3)
        torch.einsum("ij,jk->ik", torch.ones(2, 3), torch.ones(3, 4))
        torch.index_put(torch.zeros(4), (torch.tensor([1]),), torch.tensor(1.0))
        with torch.autograd.profiler.record_function("scope", "text"):
            torch.topk(torch.randn(5)[None, 1:], 2)

    work()
    theirs = torch.profiler.ExecutionTraceObserver().register_callback(str(tmp_path / "theirs.json"))
    ours = ExecutionTraceObserver().register_callback(path)
    ours.start(), theirs.start()
    work()
    theirs.stop(), ours.stop()
    theirs.unregister_callback(), ours.unregister_callback()
    expected, found = (
        {attribute(node, "rf_id"): node for node in nodes_of(name) if attribute(node, "rf_id")}
        for name in (tmp_path / "theirs.json", path)
    )
    assert len(expected) > 100 and set(expected) == set(found)
    record = [{node["id"]: key for key, node in nodes.items()} for nodes in (expected, found)]
    names = Renamed()
    for key in sorted(expected):
        one, other = expected[key], found[key]
        assert one["name"] == other["name"] and record[0].get(one["ctrl_deps"]) == record[1].get(other["ctrl_deps"])
        for side in ("inputs", "outputs"):
            assert [one[side][part] for part in ("shapes", "types", "strides")] == [
                other[side][part] for part in ("shapes", "types", "strides")
            ]
            assert names.same(one[side]["values"], other[side]["values"]), one["name"]
        for attr, mine in zip(one["attrs"], other["attrs"], strict=True):
            if attr["name"] == "fw_parent":
                assert record[0].get(attr["value"]) == record[1].get(mine["value"])
            else:
                assert attr == mine
