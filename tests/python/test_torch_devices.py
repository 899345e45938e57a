"""torch.profiler's API with devices that worked: events, averages and tables equal those that torch's own code makes
from the same activities.
"""

import ctypes
import pickle
from pathlib import Path

import pytest

import compiled
import vestige
from handmade import PYTHON
from handmade_devices import ANNOTATION, COPY, OPERATOR, OVERHEAD, RUNTIME, SET, SYNC, Work, device
from vestige import Trace
from vestige.torch import event_list
from vestige.torch.kineto import KinetoResults
from vestige.torch.results import Results

torch = pytest.importorskip("torch")
from torch._C._profiler import _EventType
from torch.autograd import DeviceType
from torch.autograd.profiler import profile as torch_profile
from torch.autograd.profiler_util import EventList, FunctionEvent

MEMCPY = "Memcpy HtoD (Pageable -> Device)"
SHAPES = '"Input Dims": [[2, 3], [3, 4]]'


def write(path, platform=b"cuda"):
    """Two steps of nested operators; the second kernel of a step is launched by an inner operator."""
    work = Work()
    for step in range(2):
        # where ids are equal, torch's own code takes ids of calls for ids of operators
        at, correlation = 1000 + 10_000 * step, 1000 + 10 * step
        work.span(ANNOTATION, f"ProfilerStep#{step}", at, at + 900)
        work.span(OPERATOR, "aten::linear", at + 100, at + 700)
        work.span(OPERATOR, "aten::addmm", at + 200, at + 500)
        work.span(OPERATOR, "aten::copy_", at + 720, at + 800)
        work.launch("gemm<float>", at + 300, at + 2000, at + 3000, correlation=correlation + 1)
        work.launch("relu", at + 600, at + 3000, at + 3250, correlation=correlation + 2)
        work.launch(MEMCPY, at + 750, at + 3300, at + 3400, correlation=correlation + 3, kind=COPY, size=8_000_000)
        work.launch("free", at + 850, at + 4000, at + 4100, correlation=correlation + 4, stream=20)
        work.activity(SET, "Memset (Device)", at + 4200, at + 4210, correlation=correlation + 5, stream=20, size=64)
        work.activity(SYNC, "Stream Sync", at + 4300, at + 5000, correlation=correlation + 6, stream=20)
        work.activity(RUNTIME, "cudaDeviceSynchronize", at + 910, at + 5000, correlation=correlation + 7)
    work.activity(OVERHEAD, "Activity Buffer Request", 40, 60, correlation=0)
    path.write_bytes(work.trace(device(platform=platform)))
    return Trace(str(path))


def read(trace, **how):
    options = {"verbose": False, "profile_memory": False, "with_flops": False, "timeout": None, **how}
    return Results(trace, {"all_windows": True}, export=lambda path: None, **options)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    return read(write(tmp_path_factory.mktemp("torch") / "t.vst"))


class Recorded:
    """Replaces a Recorder."""

    def __init__(self, results, **flags):
        self._results, self._session, self.notes, self._stopped_ns = results, None, [], None
        self.profile_memory = self.record_shapes = False

    def results(self, *_):
        return self._results


def kineto(results):
    return KinetoResults(Recorded(results), 0, 0)


@pytest.fixture(scope="module")
def theirs(results):
    return made_by_torch(results)


def made_by_torch(results):
    """Returns what torch's own code makes from the same events."""
    parser = torch_profile.__new__(torch_profile)
    parser.use_device = results.store.use_device
    events = EventList(parser._parse_kineto_results(kineto(results)), use_device=parser.use_device)
    events._build_tree()
    return events


TABLES = [
    {"sort_by": "device_time_total"},
    {"sort_by": "self_device_time_total", "row_limit": 4},
    {"sort_by": "cuda_time_total", "time_unit": "us"},
    {"sort_by": "self_cuda_time_total", "header": "A header", "max_name_column_width": 12},
    {"sort_by": "cpu_time_total"},
    {},
]


@pytest.mark.parametrize("how", TABLES, ids=lambda how: how.get("sort_by", "unsorted"))
def test_a_table_is_torchs_own(results, theirs, how):
    shown = results.key_averages().table(**how)
    assert shown == theirs.key_averages().table(**how)
    assert "Self CUDA %" in shown and "CUDA time avg" in shown
    assert "Self CUDA time total: 2.920ms" in shown or "Self CUDA time total: 2920.000us" in shown


def by_hand():
    """Returns this work as events of torch's, written by hand."""
    number = iter(range(1, 1000))

    def event(name, start, end, **more):
        how = {"overload_name": "", "input_shapes": [], "stack": [], "use_device": "cuda", "thread": 4242, **more}
        if how.setdefault("device_type", DeviceType.CPU) != DeviceType.CPU:
            how["thread"] = -1
        return FunctionEvent(next(number), name, start_us=start, end_us=end, **how)

    def kernel(name, start, end, operator=None, **more):
        if operator is not None:
            operator.append_kernel(name, 0, end - start)
        return event(name, start, end, device_type=DeviceType.CUDA, **more)

    events = [event("Activity Buffer Request", 40, 60)]
    for at in (1000, 11_000):
        events.append(event("ProfilerStep*", at, at + 900, is_user_annotation=True))
        linear, addmm = event("aten::linear", at + 100, at + 700), event("aten::addmm", at + 200, at + 500)
        copy = event("aten::copy_", at + 720, at + 800)
        events += [linear, addmm, copy]
        events += [event("cudaLaunchKernel", at + start, at + start + 10) for start in (300, 600, 850)]
        events += [event("cudaMemcpyAsync", at + 750, at + 760), event("cudaDeviceSynchronize", at + 910, at + 5000)]
        for end, start in ((3400, 2000), (4100, 4000)):  # for each stream
            events.append(kernel("ProfilerStep*", at + start, at + end, is_user_annotation=True))
        events.append(kernel("gemm<float>", at + 2000, at + 3000, addmm))
        events.append(kernel("relu", at + 3000, at + 3250, linear))
        events.append(kernel(MEMCPY, at + 3300, at + 3400, copy))
        events += [kernel("free", at + 4000, at + 4100), kernel("Memset (Device)", at + 4200, at + 4210)]
    made = EventList(sorted(events, key=lambda one: [one.time_range.start, -one.time_range.end]), use_device="cuda")
    made._build_tree()
    return made


@pytest.mark.parametrize("how", TABLES, ids=lambda how: how.get("sort_by", "unsorted"))
def test_a_table_is_that_of_events_made_by_hand(results, how):
    assert results.key_averages().table(**how) == by_hand().key_averages().table(**how)


def test_tables_by_shape_and_overload_are_torchs_own(results, theirs):
    for groups in ((True, 0, False), (False, 0, True), (True, 0, True)):
        shown = results.key_averages(*groups).table(sort_by="device_time_total")
        assert shown == theirs.key_averages(*groups).table(sort_by="device_time_total")


def test_events_are_torchs_own(results, theirs):
    ours = list(results.events)
    assert len(ours) == len(theirs) == len(results.events)
    fields = "name device_type device_index use_device is_user_annotation activity_type linked_correlation_id count"
    times = "cpu_time_total self_cpu_time_total device_time_total self_device_time_total device_time cpu_time"

    def key(event):
        return event.time_range.start, -event.time_range.end, event.name, str(event.device_type)

    for mine, other in zip(sorted(ours, key=key), sorted(theirs, key=key), strict=True):
        for field in fields.split():
            assert getattr(mine, field) == getattr(other, field), (field, mine.name)
        for field in times.split():
            assert getattr(mine, field) == pytest.approx(getattr(other, field)), (field, mine.name)
        assert [tuple(kernel) for kernel in mine.kernels] == [tuple(kernel) for kernel in other.kernels]
        assert isinstance(mine, FunctionEvent)
        assert (mine.cpu_parent and mine.cpu_parent.name) == (other.cpu_parent and other.cpu_parent.name)
        assert [child.name for child in mine.cpu_children] == [child.name for child in other.cpu_children]


def test_kernels_are_events_of_the_device(results):
    (first, _) = [event for event in results.events if event.name == "gemm<float>"]
    assert (first.device_type, first.device_index, first.device_resource_id) == (DeviceType.CUDA, 0, 7)
    assert (first.id, first.use_device, first.activity_type) == (1001, "cuda", "kernel")
    assert first.device_time_total == first.self_device_time_total == first.cuda_time_total == 1000
    assert (first.cpu_time_total, first.self_cpu_time_total, first.cpu_parent) == (0, 0, None)
    (operator, _) = [event for event in results.events if event.name == "aten::addmm"]
    assert (first.linked_correlation_id, first.external_id) == (operator.id, operator.id)
    assert [tuple(kernel) for kernel in operator.kernels] == [("gemm<float>", 0, 1000)]
    assert (operator.device_time_total, operator.self_device_time_total) == (1000, 1000)
    (outer, _) = [event for event in results.events if event.name == "aten::linear"]
    assert (outer.device_time_total, outer.self_device_time_total) == (1250, 250)


def test_averages_have_device_times(results):
    rows = {(row.key, str(row.device_type)): row for row in results.key_averages()}
    kernel = rows["gemm<float>", "DeviceType.CUDA"]
    assert (kernel.count, kernel.device_time, kernel.device_time_total, kernel.self_device_time_total) == (
        2,
        1000,
        2000,
        2000,
    )
    step = rows["ProfilerStep*", "DeviceType.CPU"]
    assert (step.device_time_total, step.self_device_time_total) == (2700, 0)
    launch = rows["cudaLaunchKernel", "DeviceType.CPU"]
    assert (launch.count, launch.cpu_time_total, launch.device_time_total) == (6, 60, 0)
    assert rows["ProfilerStep*", "DeviceType.CUDA"].is_user_annotation


def test_synchronisations_are_events_where_they_are_asked_for(results):
    assert "Stream Sync" not in {event.name for event in results.events}
    asked = read(results.trace, syncs=True)
    (first, _) = [event for event in asked.events if event.name == "Stream Sync"]
    assert (first.activity_type, first.device_type, first.device_time_total) == ("cuda_sync", DeviceType.CUDA, 700)


def test_what_is_on_no_stream_is_where_kineto_puts_it(tmp_path):
    work = Work()
    work.span(OPERATOR, "aten::mm", 200, 5000)
    work.activity(SYNC, "Context Sync", 300, 400, correlation=1001, stream=0xFFFF_FFFF)
    path = tmp_path / "t.vst"
    path.write_bytes(work.trace(device()))
    (sync,) = [event for event in read(Trace(str(path)), syncs=True).events if event.name == "Context Sync"]
    assert (sync.device_resource_id, sync.device_index) == (-1, 0)


def test_another_platform_is_what_torch_calls_privateuse1(tmp_path):
    results = read(write(tmp_path / "t.vst", b"workers"))
    (first, _) = [event for event in results.events if event.name == "relu"]
    assert (first.device_type, first.use_device) == (DeviceType.PrivateUse1, "privateuseone")
    assert "Self PRIVATEUSEONE %" in results.key_averages().table(sort_by="privateuse1_time_total")


def test_some_of_the_events_average_as_all_do(results):
    chosen = [event for event in results.events if event.name in ("relu", "aten::linear")]
    rows = {row.key: row for row in event_list.EventList(chosen, use_device="cuda").key_averages()}
    assert (rows["relu"].device_time_total, rows["aten::linear"].device_time_total) == (500, 2500)


def test_stacks_have_the_device_time_of_what_ran_in_them(tmp_path):
    work = Work()
    work.span(PYTHON, "train", 100, 900)
    work.span(OPERATOR, "aten::mm", 200, 800)
    work.launch("gemm", 300, 1000, 1700, correlation=1001)
    path = tmp_path / "t.vst"
    path.write_bytes(work.trace(device()))
    read(Trace(str(path))).export_stacks(tmp_path / "stacks.txt", "self_cuda_time_total")
    assert (tmp_path / "stacks.txt").read_text().endswith("train 700\n")
    rows = {row.key: row for row in read(Trace(str(path)), with_calls=True).key_averages()}
    (train,) = [row for key, row in rows.items() if key.endswith("train")]
    assert (train.device_time_total, train.self_device_time_total) == (700, 0)
    alone = {row.key: row for row in read(Trace(str(path)), with_calls=False).key_averages()}
    assert alone["aten::mm"].self_cpu_time_total == 590  # without the runtime's call


def test_kineto_results_have_them(results):
    events = {event.name(): event for event in kineto(results).events()}
    copy = events[MEMCPY]
    assert (copy.device_type(), copy.device_index(), copy.device_resource_id()) == (DeviceType.CUDA, 0, 7)
    assert (copy.duration_ns(), copy.activity_type(), copy.correlation_id()) == (100_000, "gpu_memcpy", 1013)
    assert '"bytes": 8000000, "memory bandwidth (GB/s)": 80.0' in copy.metadata_json()
    assert copy.linked_correlation_id() == events["aten::copy_"].correlation_id() > 0
    assert events["cudaMemcpyAsync"].linked_correlation_id() == copy.linked_correlation_id()
    assert (events["free"].linked_correlation_id(), events["free"].extra_meta()["stream"]) == (0, "20")


def test_the_tree_has_kernels_in_the_calls_that_launched_them(results):
    def walk(nodes, path=()):
        for node in nodes:
            yield (*path, node.name)
            yield from walk(node.children, (*path, node.name))

    recorded = kineto(results)
    recorded._session = type("Session", (), {"engine": "turbo"})()
    roots = recorded.experimental_event_tree()
    paths = list(walk(roots))
    step = ("ProfilerStep#0", "aten::linear", "aten::addmm")
    assert paths.count((*step, "cudaLaunchKernel", "gemm<float>")) == 1
    assert paths.count(("ProfilerStep#1", "aten::linear", "cudaLaunchKernel", "relu")) == 1
    assert ("Memset (Device)",) in paths and ("cudaDeviceSynchronize",) in paths
    starts = [node.start_time_ns for node in roots]
    assert starts == sorted(starts)
    assert {node.tag for node in roots if node.name == "Memset (Device)"} == {_EventType.Kineto}


def test_events_survive_a_copy(results):
    before = list(results.events)
    after = pickle.loads(pickle.dumps(before))
    assert [event.name for event in after] == [event.name for event in before]
    assert [event.device_time_total for event in after] == [event.device_time_total for event in before]
    assert after[0]._store is not None
    kernel = pickle.loads(pickle.dumps(next(event for event in before if event.name == "relu")))
    assert (kernel.name, kernel.device_time_total, kernel.device_resource_id) == ("relu", 250, 7)


# ---- operators that ran -----------------------------------------------------------


@pytest.fixture(scope="module")
def workers():
    """The device made of threads, as a library."""
    example = Path(__file__).parent.parent.parent / "examples" / "c" / "device"
    source = "".join(f'#include "{example / name}"\n' for name in ("library/loaded.c", "worker_device.c"))
    return compiled.library(source)


def run_operators(library):
    """Operators that launch a kernel each, in an annotation, with inputs of two sizes."""
    nothing = ctypes.cast(ctypes.CDLL(None).free, ctypes.c_void_p)

    @torch.library.custom_op("vestige_tests::gemm", mutates_args=())
    def gemm(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        library.worker_launch(0, b"gemm_kernel", nothing, None)
        return a @ b

    @torch.library.custom_op("vestige_tests::relu", mutates_args=())
    def relu(a: torch.Tensor) -> torch.Tensor:
        library.worker_launch(1, b"relu_kernel", nothing, None)
        return torch.relu(a)

    for size in (4, 8, 8):
        with torch.profiler.record_function("step"):
            relu(gemm(torch.ones(size, size), torch.ones(size, size)))
    library.worker_synchronize()


def test_operators_that_ran_have_the_kernels_that_they_launched(workers, monkeypatch):
    library = ctypes.CDLL(str(workers))
    with vestige.profile(devices=[str(workers)], record_shapes=True, with_stack=False) as prof:
        run_operators(library)
    library.worker_device_close()
    events = {
        name: [event for event in prof.events() if event.name == name] for name in ("vestige_tests::gemm", "step")
    }
    assert [[kernel.name for kernel in event.kernels] for event in events["vestige_tests::gemm"]] == [
        ["gemm_kernel"]
    ] * 3
    steps = [event for event in events["step"] if event.device_type == DeviceType.CPU]
    for event in steps:
        inside = [child for child in event.cpu_children if child.name.startswith("vestige_tests::")]
        assert event.device_time_total == pytest.approx(sum(child.device_time_total for child in inside))
    monkeypatch.setattr("vestige.torch.kineto._numbers", 1_000_000)  # far from the numbers of calls
    theirs = made_by_torch(prof._read())
    for groups in ((False,), (True,)):
        ours = rows_of(prof._read().key_averages(*groups, with_calls=True))
        others = rows_of(theirs.key_averages(*groups))
        assert ("gemm_kernel", "DeviceType.PrivateUse1", "[]" if groups[0] else "") in ours
        assert ours.keys() == others.keys()
        for key, figures in ours.items():  # torch subtracts microseconds since the start
            assert figures == pytest.approx(others[key], abs=0.05), key


def rows_of(averages):
    times = "count cpu_time_total self_cpu_time_total device_time_total self_device_time_total"
    return {
        (row.key, str(row.device_type), str(row.input_shapes)): [getattr(row, name) for name in times.split()]
        for row in averages
    }
