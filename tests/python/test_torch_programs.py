"""Programs that use more of torch than plain operators: compiled code, data loaders, futures, threads, forks. One
process and one compilation for all tests.
"""

import gc
import json
import os
import threading
import time
import types
import weakref
from concurrent.futures import ThreadPoolExecutor

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed for this Python")

import hooked
import vestige
from vestige import profile, record_function
from vestige.torch import adapter

pytestmark = pytest.mark.filterwarnings("ignore")
Fast = torch._C._profiler._RecordFunctionFast


def exported(prof, path):
    prof.export_chrome_trace(str(path))
    with open(path) as file:
        return json.load(file)["traceEvents"]


def named(prof, name):
    return [event for event in prof.events() if event.name == name]


def in_thread(function):
    thread = threading.Thread(target=function)
    thread.start()
    thread.join()


@pytest.fixture
def torch_mode():
    vestige.install()
    yield
    vestige.uninstall()


# ---- compiled code -------------------------------------------------------------


@pytest.fixture(scope="module")
def compiled():
    """A function that inductor compiled to C++."""

    def function(x):
        return torch.sin(x) * 2

    os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
    compiled = torch.compile(function, options={"cpp.enable_kernel_profile": True})
    x = torch.ones(64)
    compiled(x)
    return lambda: compiled(x)


def test_compiled_code_shows_what_torch_shows_of_it(compiled, tmp_path):
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as theirs:
        compiled()
    with profile(with_stack=False) as ours:
        compiled()
    names = [event.name for event in theirs.events()]
    assert sorted(event.name for event in ours.events()) == sorted(names)
    assert any(name.startswith("Torch-Compiled Region") for name in names)
    assert any(name.startswith("## Call CompiledFxGraph") for name in names)
    assert any("cpp_fused_" in name for name in names)


def test_compiled_code_lies_between_its_python_frames(compiled, tmp_path):
    with profile(with_stack=True, record_shapes=True) as prof:
        compiled()
    (region,) = [event for event in prof.events() if event.name.startswith("Torch-Compiled Region")]
    (graph, *_) = [event for event in prof.events() if event.name.startswith("## Call CompiledFxGraph")]
    (kernel, *_) = [event for event in prof.events() if "cpp_fused_" in event.name]
    above = kernel
    while above.cpu_parent is not None and above is not graph:
        above = above.cpu_parent
    assert above is graph
    assert region.time_range.start <= graph.time_range.start <= graph.time_range.end <= region.time_range.end
    for event in prof.events():
        if event.name in ("Pregraph bytecode", "AOTDispatcher Runtime Wrapper Prologue"):
            assert event.time_range.start >= region.time_range.start
            assert event.cpu_time_total > 0
    assert all(event.self_cpu_time_total >= 0 for event in prof.events())
    assert exported(prof, tmp_path / "t.json")


# ---- modules of TorchScript -----------------------------------------------------


class Inner(torch.nn.Module):
    def triple(self, x):
        return x * 3

    def forward(self, x, y):
        return self.triple(x) + y


class Outer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Inner()

    def forward(self, x, y):
        return self.inner(x, y) - 1


def test_operators_of_scripts_say_which_modules_they_are_of(tmp_path):
    model = torch.jit.script(Outer())
    data = torch.ones(2)
    for _ in range(3):
        model(data, data)

    def hierarchies(profile):
        with profile(with_modules=True) as prof:
            model(data, data)
        events = [e for e in exported(prof, tmp_path / "t.json") if e.get("cat") == "cpu_op"]
        return sorted((e["name"], e["args"]["Module Hierarchy"]) for e in events if "Module Hierarchy" in e["args"])

    found = hierarchies(profile)
    assert ("aten::mul", "TOP(Outer)::forward.inner(Inner)::forward.SELF(Inner)::triple.") in found
    assert [pair for pair in found if pair[0] != "forward"] == [
        pair for pair in hierarchies(torch.profiler.profile) if pair[0] != "forward"
    ]


# ---- _RecordFunctionFast --------------------------------------------------------


def test_fast_annotations_have_their_inputs(tmp_path):
    x = torch.ones(4, 4)
    keywords = {
        "stream": 0,
        "grid": "lambda x : x + 1",
        "flag": True,
        "half": 0.5,
        "names": ["a", "b"],
        "sizes": [1, 2],
    }
    with profile(with_stack=False, record_shapes=True) as prof:
        with Fast("plain"):
            x.add(x)
        for _ in range(2):
            with Fast("full", [x, x, 3], keywords):
                x.add(x)
        with Fast("tuple", (x,)):
            pass
        with Fast("text", input_values=["hi"], keyword_values={"hi": "hello"}):
            pass
        with Fast("scope", [x], {"scope": "user_scope"}):
            pass
    (plain,) = named(prof, "plain")
    assert (plain.input_shapes, plain.kwinputs) == ([], {})
    for full in named(prof, "full"):
        assert full.input_shapes == [[4, 4], [4, 4], []]
        assert full.concrete_inputs == [None, None, 3]
        assert full.kwinputs == keywords
        assert [child.name for child in full.cpu_children] == ["aten::add"]
    assert named(prof, "tuple")[0].input_shapes == [[4, 4]]
    assert named(prof, "text")[0].input_shapes == [[]]
    assert named(prof, "scope")[0].is_user_annotation and not plain.is_user_annotation
    file = {e["name"]: e for e in exported(prof, tmp_path / "t.json") if e["ph"] == "X"}
    assert file["full"]["cat"] == "cpu_op" and file["scope"]["cat"] == "user_annotation"
    assert file["full"]["args"]["names"] == ["a", "b"] and file["full"]["args"]["stream"] == 0
    with profile(with_stack=False) as prof, Fast("unasked", [x]):
        pass
    assert named(prof, "unasked")[0].input_shapes == []


def test_fast_annotations_last_as_long_as_they_do():
    def begin():
        span = Fast("begun elsewhere")
        span.__enter__()
        return span

    with profile(with_stack=True) as prof:
        span = Fast("by hand")
        span.__enter__()
        torch.ones(1)
        span.__exit__(None, None, None)
        span = begin()
        torch.ones(1)
        span.__exit__(None, None, None)
        with pytest.raises(ValueError), Fast("raises"):
            raise ValueError
    ones = named(prof, "aten::ones")
    for name, inside in (("by hand", ones[0]), ("begun elsewhere", ones[1])):
        (event,) = named(prof, name)
        assert event.time_range.start <= inside.time_range.start <= inside.time_range.end <= event.time_range.end
    assert not named(prof, "by hand")[0].is_async
    assert len(named(prof, "raises")) == 1


def wait_for_end(thread):
    thread.join()
    while os.path.exists(f"/proc/self/task/{thread.native_id}"):  # torch's data of the thread are freed last
        time.sleep(0.001)


def on_a_thread(function):
    """Runs the function on a new thread and returns the exception that it raised."""
    raised = []

    def run():
        try:
            function()
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    wait_for_end(thread)
    return raised


@pytest.mark.parametrize("engine", ["turbo", "safe"])
@pytest.mark.parametrize("memory", [False, True])
def test_a_fast_annotation_may_be_the_first_thing_a_thread_does(engine, memory):
    def work():
        with Fast("first of its thread"):
            torch.ones(1)

    with profile(engine=engine, profile_memory=memory, memory_native_allocators=False) as prof:
        assert on_a_thread(work) == []
    (event,), (ones,) = named(prof, "first of its thread"), named(prof, "aten::ones")
    assert event.time_range.start <= ones.time_range.start <= ones.time_range.end <= event.time_range.end


@pytest.mark.parametrize("engine", ["turbo", "safe"])
def test_recordings_begin_and_end_inside_of_fast_annotations(engine):
    def work(prof, reused):
        with reused:
            prof.start()
            torch.ones(1)
            with reused:
                torch.ones(1)
        with Fast("between"):
            torch.ones(1)
        with reused:
            prof.stop()
        with reused:
            pass

    reused = Fast("reused")
    for _ in range(3):
        prof = profile(engine=engine)
        assert on_a_thread(lambda prof=prof: work(prof, reused)) == []
        assert len(named(prof, "between")) == 1
    work(profile(engine=engine), reused)


def test_a_fast_annotation_lasts_longer_than_a_recording_on_another_thread():
    begin, work, end = (threading.Event() for _ in range(3))

    def outside():
        with Fast("around all"):
            begin.set()
            assert work.wait(60)
            with Fast("inside"):
                torch.ones(1)
            begin.set()
            assert end.wait(60)

    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(outside)
        assert begin.wait(60)
        begin.clear()
        with profile(with_stack=False) as prof:
            work.set()
            assert begin.wait(60)
        end.set()
        assert waiting.result(60) is None
    assert [event.name for event in prof.events() if event.name in ("around all", "inside")] == ["inside"]


def let_go_of_fast_annotations():
    """Ends profiles of earlier tests; returns whether annotations are torch's own again. They stay ours while another
    thread has our profiler, because only this thread can end it.
    """
    with profile(with_stack=False):
        pass
    return not adapter._library.vst_torch_is_watched()


def test_fast_annotations_are_torchs_own_again_after_a_recording():
    assert let_go_of_fast_annotations()
    before = hooked.Hooks()
    with profile(with_stack=False) as prof:
        assert on_a_thread(lambda: Fast("elsewhere").__enter__()) == []
        with Fast("here"):
            pass
    assert before.trouble() == ""
    assert len(named(prof, "here")) == 1


def test_fast_annotations_work_while_a_thread_of_the_recording_lives_and_are_torchs_own_again_afterwards():
    recorded, stopped, more, end = (threading.Event() for _ in range(4))
    seen = []

    def work():
        with Fast("of the recording"):
            pass
        recorded.set()
        assert stopped.wait(60)
        with Fast("after the stop"):
            seen.append(torch.autograd._profiler_enabled())
        with torch.profiler.profile() as theirs, Fast("of torch"):
            torch.ones(1)
        seen.extend(event.name for event in theirs.events() if event.name == "of torch")
        more.set()
        end.wait(60)

    assert let_go_of_fast_annotations()
    before = hooked.Hooks()
    thread = threading.Thread(target=work)
    with profile(with_stack=False) as prof:
        thread.start()
        assert recorded.wait(60)
    stopped.set()
    assert more.wait(60)
    end.set()
    wait_for_end(thread)
    assert seen == [False, "of torch"]
    assert [len(named(prof, name)) for name in ("of the recording", "after the stop")] == [1, 0]
    assert let_go_of_fast_annotations()
    assert before.trouble() == ""


# ---- what ends on another thread ------------------------------------------------


def check_between(prof, name, before, after):
    """Checks that the event is one span that ends after one annotation and before another."""
    (event,) = named(prof, name)
    assert event.is_async and event.self_cpu_time_total == 0
    assert named(prof, before)[0].time_range.end <= event.time_range.end
    assert event.time_range.end <= named(prof, after)[0].time_range.start
    return event


@pytest.mark.parametrize("stack", [False, True])
@pytest.mark.parametrize("span", [record_function, torch.profiler.record_function, Fast])
def test_a_span_that_another_thread_ends_has_its_true_times(span, stack, tmp_path):
    with profile(with_stack=stack) as prof:
        open_one = span("waits")
        open_one.__enter__()
        with record_function("before"):
            torch.ones(1)
        in_thread(lambda: (torch.ones(1), open_one.__exit__(None, None, None)))
        with record_function("after"):
            torch.ones(1)
    event = check_between(prof, "waits", "before", "after")
    assert event.thread == threading.get_native_id()
    pair = [e for e in exported(prof, tmp_path / "t.json") if e["name"] == "waits"]
    assert [e["ph"] for e in pair] == ["b", "e"]
    assert pair[1]["ts"] - pair[0]["ts"] == pytest.approx(event.cpu_time_total, abs=0.002)


@pytest.mark.parametrize("span", [record_function, torch.profiler.record_function])
def test_a_future_ends_its_span_whichever_threads_begin_and_finish_it(span):
    future = torch.futures.Future()

    def begin():
        with span("waits") as waits:
            waits._call_end_callbacks_on_future(future)
            with pytest.raises(RuntimeError, match="only be called once"):
                waits._call_end_callbacks_on_future(future)

    with profile(with_stack=False) as prof:
        in_thread(begin)
        with record_function("before"):
            pass
        in_thread(lambda: future.set_result(1))
        with record_function("after"):
            pass
    check_between(prof, "waits", "before", "after")


def test_averages_and_stacks_count_such_spans_once():
    with profile(with_stack=True) as prof:
        for _ in range(3):
            span = record_function("waits")
            span.__enter__()
            in_thread(lambda span=span: span.__exit__(None, None, None))
    for grouping in ({}, {"group_by_stack_n": 3}):
        rows = [row for row in prof.key_averages(include_python_functions=True, **grouping) if row.key == "waits"]
        assert sum(row.count for row in rows) == 3
        assert all(row.self_cpu_time_total == 0 for row in rows)


# ---- loaders, threads, forks ----------------------------------------------------


class Squares(torch.utils.data.Dataset):
    def __len__(self):
        return 6

    def __getitem__(self, index):
        return torch.ones(3) * index


def test_a_loader_with_workers_is_annotated_and_its_threads_are_seen():
    """A thread that pins memory is a Python thread that runs operators; without an accelerator, there is no such
    thread.
    """
    loader = torch.utils.data.DataLoader(Squares(), batch_size=2, num_workers=1, pin_memory=True)
    copied = []

    def pin():
        for batch in loader:
            copied.append(batch.clone())

    with profile(with_stack=False) as prof:
        in_thread(pin)
    assert len(copied) == 3
    steps = named(prof, "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__")
    assert len(steps) == 4  # the last step finds no batch
    assert {event.thread for event in (*steps, *named(prof, "aten::clone"))} - {threading.get_native_id()} == {
        steps[0].thread
    }


def test_optimizers_are_annotated_by_their_class():
    class Own(torch.optim.SGD):
        pass

    weight = torch.ones(2, requires_grad=True)
    weight.sum().backward()
    for optimizer in (torch.optim.SGD([weight], lr=0.1), Own([weight], lr=0.1)):
        with profile(with_stack=False) as prof:
            optimizer.step()
            optimizer.zero_grad()
        name = type(optimizer).__name__
        annotations = [event.name for event in prof.events() if event.is_user_annotation]
        assert annotations == [f"Optimizer.step#{name}.step", f"Optimizer.zero_grad#{name}.zero_grad"]


def test_a_forked_child_profiles_itself(tmp_path):
    with profile(with_stack=False):
        torch.ones(1)
    path = tmp_path / "child.json"
    child = os.fork()
    if child == 0:
        code = 1
        try:
            with profile(with_stack=False) as prof:
                torch.ones(1)
            operators = [e for e in exported(prof, path) if e.get("cat") == "cpu_op"]
            code = 0 if operators and {e["pid"] for e in operators} == {os.getpid()} else 2
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0


def test_what_torch_was_given_is_let_go(torch_mode):
    """With all recording options, and after the events were read."""
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU())
    optimizer = torch.optim.Adam(model.parameters())
    data = torch.ones(3, 2)
    hooked = []
    handle = model[0].register_forward_hook(lambda *_: hooked.append(1))
    with profile(record_shapes=True, with_stack=True, profile_memory=True, with_flops=True, with_modules=True) as prof:
        loss = model(data).sum()
        with Fast("fast", [data], {"a": "b"}), record_function("span", data):
            loss.backward()
        optimizer.step()
    assert hooked and prof.key_averages() and prof.events()
    seen = [weakref.ref(thing) for thing in (model, model[0], optimizer, data, loss, model[0].weight)]
    handle.remove()
    del model, optimizer, data, loss, handle
    gc.collect()
    assert [ref() for ref in seen] == [None] * len(seen)


# ---- memory in tables -----------------------------------------------------------


@pytest.mark.parametrize("stack", [False, True])
def test_bytes_of_operators_are_torchs(torch_mode, stack):
    """Sums of the memory of an operator and its children, minus frees; and frees outside all operators."""

    def work(profile):
        with profile(profile_memory=True, record_shapes=True, with_stack=stack) as prof:
            with torch.profiler.record_function("takes"):
                x = torch.rand(10, 10)
                y = x @ x
            with torch.profiler.record_function("gives"):
                del x
            del y
        rows = prof.key_averages(**({"include_python_functions": False} if profile is vestige.profile else {}))
        table = rows.table(sort_by="self_cpu_memory_usage")
        assert "CPU Mem" in table and "Self CPU Mem" in table
        return {
            row.key: (row.count, row.cpu_memory_usage, row.self_cpu_memory_usage)
            for row in rows
            if row.key.startswith("aten::") or row.key in ("takes", "gives", "[memory]")
        }

    ours = work(vestige.profile)
    vestige.uninstall()
    theirs = work(torch.profiler.profile)
    vestige.install()
    if stack:  # Python functions that annotations call have their own rows there
        for rows in (ours, theirs):
            rows.pop("takes"), rows.pop("gives")
    assert ours == theirs
    if not stack:
        assert ours["takes"][1] == 800 and ours["gives"] == (1, -400, -400) and ours["[memory]"][1] == -400


def test_freed_blocks_are_events_of_their_own(torch_mode):
    with profile(profile_memory=True) as prof:
        x = torch.empty(100, dtype=torch.uint8)
        del x
    (event,) = named(prof, "[memory]")
    assert (event.cpu_memory_usage, event.cpu_time_total, event.trace_name) == (-100, 0, None)
    assert event.cpu_parent is None and not event.is_python_function
    assert prof.total_average().self_cpu_memory_usage == 0


# ---- trees, names, clocks ---------------------------------------------------------


def test_names_that_are_no_json_make_a_valid_file(tmp_path):
    odd = types.FunctionType((lambda: None).__code__.replace(co_filename='a"b.py', co_name='c"\\d'), {})
    with profile(with_stack=True) as prof, record_function('e"\n'):
        odd()
    names = {e["name"] for e in exported(prof, tmp_path / "t.json")}
    assert 'e"\n' in names and any('a"b.py' in name for name in names)


def test_times_are_microseconds():
    with profile(with_stack=False) as prof, record_function("sleeps"):
        time.sleep(0.05)
    (event,) = named(prof, "sleeps")
    assert 50_000 <= event.cpu_time_total < 5_000_000
    assert event.cpu_time_total_str.endswith("ms") or event.cpu_time_total_str.endswith("s")


def test_a_profiler_is_announced_while_we_record():
    assert not torch.autograd.profiler._is_profiler_enabled and not torch.autograd._profiler_enabled()
    with profile(with_stack=False):
        assert torch.autograd.profiler._is_profiler_enabled and torch.autograd._profiler_enabled()
    assert not torch.autograd.profiler._is_profiler_enabled and not torch.autograd._profiler_enabled()


def test_the_trees_of_events_are_torchs(torch_mode):
    """Nested operators, in a forward and a backward pass."""
    x, y = (torch.ones(4, 4, requires_grad=True) for _ in range(2))

    def work(profile):
        x.grad = y.grad = None
        with profile() as prof:
            with torch.profiler.record_function("top"):
                z = (x @ y).relu().sum()
            z.backward()

        def tree(event):
            children = event.cpu_children
            # torch's events leave out this call, torch's file does not
            while len(children) == 1 and children[0].name == event.name:
                children = children[0].cpu_children
            return event.name, [tree(child) for child in children]

        return [tree(event) for event in prof.events() if event.cpu_parent is None]

    ours = work(vestige.profile)
    vestige.uninstall()
    assert ours == work(torch.profiler.profile)
    vestige.install()
