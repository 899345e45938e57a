"""Operators of torch on our timeline, compared with torch.profiler's results for the same program."""

import asyncio
import gc
import json
import threading
import weakref
from collections import Counter

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed for this Python")

from torch.profiler import ProfilerActivity
from torch.profiler import profile as torch_profile

import vestige
from vestige import profile
from vestige.torch import adapter as torch_ops

pytestmark = pytest.mark.filterwarnings("ignore")
OPERATORS = ("cpu_op", "user_annotation")


def events(prof, path):
    prof.export_chrome_trace(str(path))
    with open(path) as file:
        return json.load(file)["traceEvents"]


def spans(found, *categories):
    chosen = [e for e in found if e["ph"] == "X" and e.get("cat") in (categories or OPERATORS)]
    return sorted(chosen, key=lambda e: (e["ts"], -e["dur"]))


def ns(microseconds):
    return round(microseconds * 1000)


def assert_nested(found):
    """Checks that on a thread no span reaches out of the span in which it begins, as Perfetto requires."""
    threads = {}
    for e in spans(found, "python_function", *OPERATORS):
        threads.setdefault(e["tid"], []).append((ns(e["ts"]), ns(e["ts"]) + ns(e["dur"]), e["name"]))
    for track in threads.values():
        open_until = []
        for start, end, name in track:
            while open_until and open_until[-1] <= start:
                open_until.pop()
            assert not open_until or end <= open_until[-1], name
            open_until.append(end)


def parents(found, *categories):
    """Returns each span's name with the name of the span around it."""
    pairs, around = [], []
    for e in spans(found, *categories):
        while around and (around[-1]["tid"] != e["tid"] or ns(around[-1]["ts"] + around[-1]["dur"]) <= ns(e["ts"])):
            around.pop()
        pairs.append((e["name"], around[-1]["name"] if around else None))
        around.append(e)
    return pairs


def record(work, tmp_path, **options):
    with profile(**{"with_stack": False, **options}) as prof:
        work()
    found = events(prof, tmp_path / "ours.json")
    assert_nested(found)
    return found


def names(found, *categories):
    return [e["name"] for e in spans(found, *categories)]


# ---- the same program under both ---------------------------------------------


def make_program():
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x = torch.randn(2, 8)
    loader = torch.utils.data.DataLoader([x, x], batch_size=None)

    def program():
        optimizer.zero_grad()
        with torch.profiler.record_function("forward"):
            loss = model(x).sum()
        loss.backward()
        optimizer.step()
        for batch in loader:
            torch.cat([batch, batch])
        torch.stack([x] * 40)
        torch.zeros(3, 4, dtype=torch.int8).to(torch.float16)
        torch.nn.functional.conv2d(torch.randn(1, 3, 8, 8), torch.randn(4, 3, 3, 3), stride=2)
        torch.full((2,), float("inf")) * -0.1
        x.view(*([1] * 33 + [16]))
        torch.complex(x, x) * (1 + 2j)
        torch.gradient(x, spacing=[1.0, 2.5])
        torch.bmm(torch.randn(2, 3, 4), torch.randn(2, 4, 5))
        torch.baddbmm(torch.zeros(2, 3, 5), torch.randn(2, 3, 4), torch.randn(2, 4, 5))
        torch.sparse_coo_tensor(torch.tensor([[0, 1], [1, 0]]), torch.tensor([1.0, 2.0]), (2, 2)).to_dense()
        torch.scatter_reduce(x, 0, torch.zeros(2, 8, dtype=torch.long), x, reduce="sum")

    return program


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """Returns the events of torch.profiler and of ours for one program, and the two profiles."""
    folder = tmp_path_factory.mktemp("both")
    program = make_program()
    program()
    gc.collect()  # frees remains of earlier tests before either profiler records
    settings = {"record_shapes": True, "with_flops": True, "profile_memory": True, "with_stack": True}
    with torch_profile(activities=[ProfilerActivity.CPU], **settings) as theirs:
        program()
    vestige.install()  # memory comes from torch's reports
    try:
        with profile(**settings) as ours:
            program()
    finally:
        vestige.uninstall()
    return events(theirs, folder / "theirs.json"), events(ours, folder / "ours.json"), theirs, ours


def test_names_and_their_order_are_torchs(both):
    theirs, ours, *_ = both
    assert len(names(ours)) > 150
    assert [(e["name"], e["cat"]) for e in spans(ours)] == [(e["name"], e["cat"]) for e in spans(theirs)]


def test_operators_are_within_the_same_operators(both):
    theirs, ours, *_ = both
    assert parents(ours) == parents(theirs)


def test_all_spans_of_a_thread_nest(both):
    assert_nested(both[1])
    assert not [e for e in both[1] if e["ph"] in "be"]


IDS = ("External id", "Record function id", "Ev Idx", "Flops")


def arguments(found):
    """Returns each operator's arguments, without ids; sequence numbers count from 0."""
    listed = [{k: v for k, v in e["args"].items() if k not in IDS} for e in spans(found)]
    first = min(a["Sequence number"] for a in listed if "Sequence number" in a)
    for a in listed:
        if "Sequence number" in a:
            a["Sequence number"] -= first
    return listed


def test_inputs_and_sequence_numbers_are_torchs(both):
    theirs, ours, *_ = both
    assert arguments(ours) == arguments(theirs)


def test_arrows_lead_from_and_to_the_same_operators(both):
    def arrows(found):
        places = {(e["tid"], e["ts"]): i for i, e in enumerate(spans(found))}
        ends = {}
        for e in found:
            if e.get("cat") == "fwdbwd":
                ends.setdefault(e["id"], {})[e["ph"]] = places[e["tid"], e["ts"]]  # times are exactly equal
                assert e["ph"] == "s" or e["bp"] == "e"
        return sorted((end["s"], end["f"]) for end in ends.values())

    theirs, ours, *_ = both
    assert len(arrows(ours)) >= 6
    assert arrows(ours) == arrows(theirs)


def test_every_operator_has_ids_of_its_own(both):
    for key in IDS[:3]:
        ids = [e["args"][key] for e in spans(both[1])]
        assert 0 not in ids
        assert len(set(ids)) == len(ids)


def test_modules_are_named_as_torch_names_them(both):
    def modules(found):
        called = [e for e in spans(found, "python_function") if e["name"].startswith("nn.Module: ")]
        return [(e["name"], e["args"]["Python module id"]) for e in called]

    theirs, ours, *_ = both
    assert modules(ours) == modules(theirs)
    assert [name for name, _ in modules(ours)] == [
        "nn.Module: Sequential_0", "nn.Module: Linear_0", "nn.Module: ReLU_0", "nn.Module: Linear_1"
    ]  # fmt: skip


def test_what_torch_annotates_is_there(both):
    annotations = {name for name in names(both[1], "user_annotation")}
    assert annotations == {
        "Optimizer.zero_grad#SGD.zero_grad",
        "Optimizer.step#SGD.step",
        "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
        "forward",
    }


def test_allocations_are_those_that_torch_reports(both):
    def sizes(found):
        """Returns sizes without blocks of an earlier run, which torch's own threads may free late."""
        listed, known = [], set()
        for event in sorted(found, key=lambda e: e.get("ts", 0)):
            if event["name"] == "[memory]" and (event["args"]["Bytes"] > 0 or event["args"]["Addr"] in known):
                known.add(event["args"]["Addr"])
                listed.append(event["args"]["Bytes"])
        return listed

    theirs, ours, *_ = both
    assert len(sizes(ours)) > 50
    assert sizes(ours) == sizes(theirs)


def test_floating_point_operations_are_counted_as_torch_counts(both):
    *_, theirs, _ = both
    expected = Counter((e.name, e.flops) for e in theirs.events() if e.flops)
    assert {name for name, _ in expected} >= {"aten::addmm", "aten::bmm", "aten::conv2d", "aten::mul", "aten::add"}
    assert Counter((e["name"], e["args"]["Flops"]) for e in spans(both[1]) if "Flops" in e["args"]) == expected


# ---- what programs do ---------------------------------------------------------


def test_without_shapes_no_inputs_are_recorded(tmp_path):
    [relu, clamp] = spans(record(lambda: torch.relu(torch.ones(3)), tmp_path), "cpu_op")[-2:]
    assert (relu["name"], clamp["name"]) == ("aten::relu", "aten::clamp_min")
    assert not [key for key in relu["args"] if "Input" in key]


def test_threads_have_tracks_of_their_own(tmp_path):
    def work():
        threads = [threading.Thread(target=lambda: torch.tanh(torch.ones(2))) for _ in range(3)]
        [t.start() for t in threads], [t.join() for t in threads]
        torch.sinh(torch.ones(2))

    found = record(work, tmp_path, with_stack=True)
    tids = {e["tid"] for e in spans(found) if e["name"] == "aten::tanh"}
    [main] = {e["tid"] for e in spans(found) if e["name"] == "aten::sinh"}
    assert len(tids) == 3
    assert main not in tids


def test_threads_of_c_without_the_gil_are_recorded(tmp_path):
    @torch.jit.script
    def forked(x):
        future = torch.jit._fork(torch.sin, x)
        return torch.jit._wait(future) + torch.cos(x)

    forked(torch.ones(2))
    found = record(lambda: [forked(torch.ones(2)) for _ in range(5)], tmp_path)
    sines = [e for e in spans(found) if e["name"] == "aten::sin"]
    assert len(sines) == 5
    assert {e["tid"] for e in sines} - {threading.get_native_id()}


def test_an_operator_that_raises_is_marked(tmp_path):
    def work():
        for _ in range(2):
            with pytest.raises(RuntimeError, match="mat1 and mat2"):
                torch.mm(torch.ones(2, 3), torch.ones(2, 3))
            torch.neg(torch.ones(1))

    found = record(work, tmp_path, with_stack=True)
    assert [e["args"].get("raised") for e in spans(found) if e["name"] == "aten::mm"] == [1, 1]
    assert [e["args"].get("raised") for e in spans(found) if e["name"] == "aten::neg"] == [None, None]


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 2


def test_python_inside_operators_is_within_them(tmp_path):
    """Custom functions and hooks run inside the backward operators; their parent in Python is the call of backward()."""

    def hook(gradient):
        return gradient + 1

    def work():
        x = torch.ones(3, requires_grad=True)
        y = Doubled.apply(x)
        y.register_hook(hook)
        y.sum().backward()

    found = record(work, tmp_path, with_stack=True)
    inside = dict(parents(found, "python_function", *OPERATORS))
    [backward] = [name for name in inside if name.endswith("): Doubled.backward")]
    [called] = [name for name in inside if name.endswith(".<locals>.hook")]
    assert inside[inside[backward]] is not None
    by_id = {e["args"]["Python id"]: e["name"] for e in spans(found, "python_function")}
    for e in spans(found, "python_function"):
        parent = e["args"]["Python parent id"]
        assert parent is None or parent in by_id  # never an operator
    assert called in names(found, "python_function")
    assert "DoubledBackward" in names(found)


class Logged(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        return super().__torch_function__(function, types, args, kwargs or {})


class Wrapped(torch.Tensor):
    @staticmethod
    def __new__(cls, inner):
        made = torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)
        made.inner = inner
        return made

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        return function(*(a.inner if isinstance(a, Wrapped) else a for a in args), **(kwargs or {}))


def test_classes_that_intercept_operators_work_and_are_seen(tmp_path):
    results = []

    def work():
        results.append(torch.exp(torch.ones(2).as_subclass(Logged)))
        results.append(torch.exp(Wrapped(torch.ones(2))))

    found = record(work, tmp_path, with_stack=True, record_shapes=True)
    assert [r.tolist() for r in results] == [[torch.e.__class__(2.7182817459106445)] * 2] * 2
    assert names(found, "cpu_op").count("aten::exp") >= 2
    assert any("__torch_dispatch__" in name for name in names(found, "python_function"))


def test_scripted_and_compiled_code_shows_its_operators(tmp_path):
    @torch.jit.script
    def scripted(x):
        return torch.sigmoid(x) + 1

    compiled = torch.compile(lambda x: torch.erf(x) * 2, backend="eager")
    scripted(torch.ones(2)), compiled(torch.ones(2))
    found = record(lambda: (scripted(torch.ones(2)), compiled(torch.ones(2))), tmp_path, with_stack=True)
    assert {"aten::sigmoid", "aten::erf"} <= set(names(found))


def test_annotations_around_an_await_are_kept(tmp_path):
    async def job():
        with torch.profiler.record_function("waits"):
            await asyncio.sleep(0)
            torch.ones(1)

    async def main():
        await asyncio.gather(job(), job())

    found = record(lambda: asyncio.run(main()), tmp_path, with_stack=True)
    assert len([e for e in found if e["name"] == "waits" and e["ph"] in "Xb"]) == 2


def test_overloads_are_named_on_request(tmp_path):
    config = torch._C._profiler._ExperimentalConfig(capture_overload_names=True)
    found = record(lambda: torch.ones(2) + torch.ones(2), tmp_path, experimental_config=config)
    [add] = [e for e in spans(found) if e["name"] == "aten::add"]
    assert add["args"]["Overload name"] == "Tensor"


def test_an_operator_that_lies_where_another_one_did_has_its_own_name():
    """Names are recognised by their address; a removed name's address is used again."""
    wanted = [f"vestige_reuse::operator_number_{number:04}" for number in range(60)]
    with profile(with_stack=False) as prof:
        for name in wanted:
            space, operator = name.split("::")
            library = torch.library.Library(space, "DEF")
            library.define(f"{operator}(Tensor x) -> Tensor")
            library.impl(operator, lambda x: x + 1, "CPU")
            getattr(getattr(torch.ops, space), operator)(torch.ones(1))
            library._destroy()
    assert [event.name for event in prof.events() if event.name.startswith("vestige_reuse")] == wanted


def test_inputs_that_do_not_fit_a_record_are_said_to_be_too_long(tmp_path):
    text = "x" * 9000
    found = record(lambda: torch.jit.annotate(str, text) and _fast(text), tmp_path, record_shapes=True)
    assert "Inputs" not in spans(found)[-1]["args"] or spans(found)[-1]["args"]["Inputs"] == "too long to record"
    many = [torch.ones((1,) * 60) for _ in range(29)]
    found = record(lambda: [torch.cat(many), torch.cat([torch.ones((1,) * 64)] * 30)], tmp_path, record_shapes=True)
    assert names(found).count("aten::cat") == 2


def _fast(text):
    with torch.autograd.profiler.record_function("long", text):
        return torch.ones(1)


def test_tensors_and_modules_are_not_kept_alive(tmp_path):
    model = torch.nn.Linear(2, 2)
    x = torch.ones(2)
    with profile(record_shapes=True, with_stack=True) as prof:
        y = model(x)
        seen = [weakref.ref(model), weakref.ref(x), weakref.ref(y)]
        del model, x, y
        gc.collect()
        assert [ref() for ref in seen] == [None] * 3
        again = torch.nn.Linear(2, 2)  # perhaps at the address of the other module
        again(torch.ones(2))
        last = weakref.ref(again)
        del again
    gc.collect()
    assert last() is None
    modules = [n for n in names(events(prof, tmp_path / "t.json"), "python_function") if n.startswith("nn.Module")]
    assert modules == ["nn.Module: Linear_0", "nn.Module: Linear_1"]


def test_a_pause_records_nothing_and_the_rest_goes_on(tmp_path):
    with profile(with_stack=False) as prof:
        torch.sin(torch.ones(1))
        prof.toggle_collection_dynamic(False)
        torch.cos(torch.ones(1))
        prof.toggle_collection_dynamic(True)
        torch.tan(torch.ones(1))
    torch.exp(torch.ones(1))
    found = names(events(prof, tmp_path / "t.json"))
    assert [name for name in found if name in ("aten::sin", "aten::cos", "aten::tan", "aten::exp")] == [
        "aten::sin", "aten::tan"
    ]  # fmt: skip


def test_it_runs_beside_torchs_own_profiler(tmp_path):
    """Either profiler may be inside the other: both record the operators."""
    with profile(with_stack=False, profile_memory=True, memory_native_allocators=False) as outer:
        with torch_profile(activities=[ProfilerActivity.CPU], profile_memory=True) as inner:
            torch.sin(torch.ones(3))
        torch.cos(torch.ones(3))
    assert {"aten::sin", "aten::cos"} <= set(names(events(outer, tmp_path / "a.json")))
    assert "aten::sin" in {e.name for e in inner.events()}
    with torch_profile(activities=[ProfilerActivity.CPU], profile_memory=True) as outer:
        with profile(with_stack=False, profile_memory=True, memory_native_allocators=False) as inner:
            torch.sin(torch.ones(3))
        torch.cos(torch.ones(3))
    assert {"aten::sin", "aten::cos"} <= {e.name for e in outer.events()}
    assert "aten::sin" in names(events(inner, tmp_path / "b.json"))
    with profile(with_stack=False) as outer:
        with torch.autograd.profiler_legacy.profile() as inner:
            torch.sin(torch.ones(3))
        with torch.autograd.profiler.emit_itt():
            torch.cos(torch.ones(3))
    assert "aten::sin" in {e.name for e in inner.function_events}
    assert {"aten::sin", "aten::cos"} <= set(names(events(outer, tmp_path / "c.json")))
    assert not torch.autograd._profiler_enabled()


def test_memory_is_not_counted_twice(tmp_path):
    """By malloc's hooks, or, if these are off, by torch's reports: a tensor's bytes are counted once."""

    def work():
        torch.empty(1_000_003, dtype=torch.uint8)

    for native in (True, False):
        found = record(work, tmp_path, profile_memory=True, memory_native_allocators=native)
        taken = [e["args"]["Bytes"] for e in found if e["name"] == "[memory]" and e["args"]["Bytes"] >= 1_000_003]
        assert len(taken) == 1, native


def test_nothing_of_ours_is_left_in_torch_after_a_stop():
    with profile(with_stack=False):
        assert torch.autograd.profiler._is_profiler_enabled
    assert not torch.autograd.profiler._is_profiler_enabled
    assert torch_ops._flags is None
