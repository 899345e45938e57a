"""kineto_results.experimental_event_tree() compared with torch's own: in one process, both record the same work."""

import gc
import re
import threading
import weakref

import pytest

import vestige

torch = pytest.importorskip("torch", reason="torch is not installed for this Python")

from torch._C import _profiler
from torch.profiler import _memory_profiler, _utils

try:
    from torch.profiler import _pattern_matcher
except ImportError:  # torch 2.15 lacks this module
    _pattern_matcher = None

pytestmark = pytest.mark.filterwarnings("ignore")

Theirs = torch.profiler.profile
ALL = {"record_shapes": True, "profile_memory": True, "with_stack": True}
TYPE = _profiler._EventType


@pytest.fixture(params=["turbo", "safe"])
def engine(request, monkeypatch):
    monkeypatch.setenv("VESTIGE_ENGINE", request.param)
    return request.param


@pytest.fixture(autouse=True)
def _own_place():
    yield
    vestige.uninstall()


def recorded(work, ours, **options):
    """Returns a profile of the work, by torch or by us. The work runs once before, so that its imports are not
    compared.
    """
    work()
    gc.collect()
    if ours:
        vestige.install()
    with (torch.profiler.profile if ours else Theirs)(**options) as prof:
        work()
    vestige.uninstall()
    return prof


def both(work, **options):
    return recorded(work, True, **options), recorded(work, False, **options)


def tree(prof):
    return prof.profiler.kineto_results.experimental_event_tree()


def nodes(prof):
    return list(_utils.traverse_dfs(tree(prof)))


def plain(name):
    """Returns the name without parts that differ between calls or profilers."""
    # vestige names what pybind11 3 binds as a function, not as a method of pybind11's own object.
    name = re.sub(r"method (\S*) of pybind11_builtins\.[^ ]+ object", r"function \1", name)
    return re.sub(r" at 0x[0-9a-fA-F]+>", ">", name)


def below(prof, name):
    """Returns the nodes inside the outermost node with this name."""
    found = next(node for node in nodes(prof) if node.name.endswith(name))
    return found.children


def lines(children, depth=0):
    for node in children:
        yield "  " * depth + plain(node.name)
        yield from lines(node.children, depth + 1)


def facts(value):
    """Returns the properties of a tensor or of a list of tensors."""
    if isinstance(value, list):
        return [facts(each) for each in value]
    if not isinstance(value, _profiler._TensorMetadata):
        return value
    return value.sizes, value.strides, value.dtype, value.layout, value.device, value.dim, value.id, value.allocation_id


def in_thread(function):
    thread = threading.Thread(target=function)
    thread.start()
    thread.join()


def step():
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(2):
        loss = model(torch.ones(3, 4)).sum()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


# ---- the tree -------------------------------------------------------------------


def test_calls_operators_and_allocations_nest_as_in_torchs(engine):
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))

    def work():
        len([model(torch.ones(3, 4)).sum().backward() for _ in range(2)])

    ours, theirs = both(work, **ALL)
    # With turbo, methods called by operators and statements are left out: turbo sees more of them than the interpreter.
    shown = [
        [line for line in lines(below(prof, ": work")) if engine == "safe" or not re.search("method __\\w+__ of", line)]
        for prof in (ours, theirs)
    ]
    assert shown[0] == shown[1]
    assert any("nn.Module: Sequential_0" in line for line in shown[0])


def test_functions_in_c_that_operators_hold_are_in_the_tree_as_in_torchs(engine):
    x = torch.ones(2)

    def work():
        torch.ops.aten.add.Tensor(x, x)
        torch.ops.aten.add(x, x)

    ours, theirs = both(work, with_stack=True)
    shown = list(lines(below(ours, ": work")))
    assert shown == list(lines(below(theirs, ": work")))
    assert "  <built-in function >" in shown


def test_operators_allocations_and_annotations_nest_without_calls():
    def work():
        with torch.profiler.record_function("outer"):
            x = torch.ones(3, requires_grad=True)
            with torch.profiler.record_function("inner"):
                (x * 2).sum().backward()

    ours, theirs = both(work, profile_memory=True)
    assert list(lines(tree(ours))) == list(lines(tree(theirs)))


def test_an_annotation_that_is_not_left_has_what_follows_in_it():
    def work():
        with torch.profiler.record_function("outer"):
            kept.append(torch.profiler.record_function("left open"))
            kept[-1].__enter__()
            torch.ones(3)

    kept = []
    ours, theirs = both(work)
    assert list(lines(tree(ours))) == list(lines(tree(theirs)))


def test_inputs_are_described_as_in_torchs():
    def work():
        x = torch.ones(4, 6, dtype=torch.float64, requires_grad=True)
        y = torch.stack([x[:, ::2], x[:, 1::2]]).half()
        torch.add(y, 3, alpha=2)
        torch.ones(2).to_sparse()
        torch.ones(3, dtype=torch.complex64) * (1 + 2j)
        torch._foreach_add([torch.ones(1)] * 40, 1.0)
        torch.tensor([True]).any()
        torch.zeros(2).resize_(1000)

    def described(prof):
        return [
            (node.name, facts(node.extra_fields.inputs), node.extra_fields.scope)
            for node in nodes(prof)
            if node.tag == TYPE.TorchOp
        ]

    ours, theirs = both(work, **ALL)
    assert described(ours) == described(theirs)


def test_allocations_have_numbers_sizes_and_totals_as_in_torchs():
    def described(prof):
        found = [node.extra_fields for node in nodes(prof) if node.tag == TYPE.Allocation]
        first = found[0].total_allocated - found[0].alloc_size
        return [
            (
                each.alloc_size,
                each.total_allocated - first,
                each.total_reserved,
                each.device,
                each.id,
                each.allocation_id,
            )
            for each in found
        ]

    ours, theirs = both(step, **ALL)
    assert described(ours) == described(theirs)


def test_modules_and_optimizers_have_their_parameters(engine):
    kept = []

    def work():
        model = torch.nn.Linear(4, 2)
        optimizer = torch.optim.Adam(model.parameters())
        for _ in range(2):
            model(torch.ones(1, 4)).sum().backward()
            optimizer.step()
        kept[:] = model, optimizer

    def described(prof):
        module, optimizer = None, None
        for node in sorted(nodes(prof), key=lambda node: node.start_time_ns):
            if node.tag == TYPE.PyCall:
                module, optimizer = module or node.extra_fields.module, optimizer or node.extra_fields.optimizer
        assert module.self_ptr == id(kept[0]) and module.cls_ptr == id(torch.nn.Linear)
        assert optimizer.self_ptr == id(kept[1])
        return (
            module.cls_name,
            [(name, facts(own), facts(gradient)) for name, own, gradient in module.parameters],
            [
                (facts(own), facts(gradient), [(name, facts(each)) for name, each in state])
                for own, gradient, state in optimizer.parameters
            ],
        )

    ours = recorded(work, True, **ALL)
    mine = described(ours)
    assert mine == described(recorded(work, False, **ALL))
    assert mine[2][0][2][1][0] == "exp_avg"


def test_a_node_has_what_torchs_has():
    ours, theirs = both(step, **ALL)
    some = nodes(ours)
    for tag in (TYPE.TorchOp, TYPE.Allocation, TYPE.PyCall, TYPE.PyCCall):
        mine, other = (next(node for node in nodes(prof) if node.tag == tag) for prof in (ours, theirs))
        for owner, whole in ((mine, other), (mine.extra_fields, other.extra_fields)):
            assert isinstance(owner, type(whole))
            assert not [name for name in dir(whole) if name[0] != "_" and not hasattr(owner, name)]
    assert all(node.typed == (node.tag, node.extra_fields) for node in some)
    assert all(node.end_time_ns - node.start_time_ns == node.duration_time_ns >= 0 for node in some)
    assert len({node.id for node in some}) == len(some)
    assert all(node in node.parent.children for node in some if node.parent is not None)
    # Only operators: torch's compiler leaves a thread that waits in a call, and every later tree has this call.
    assert len({node.start_tid for node in some if node.tag == TYPE.TorchOp}) == 1
    numbers = [node.correlation_id for node in some if node.tag == TYPE.TorchOp]
    assert len(set(numbers)) == len(numbers) and 0 not in numbers


def test_sequence_numbers_link_forward_and_backward():
    ours, theirs = both(step, **ALL)

    def numbers(prof):
        found = [node for node in nodes(prof) if node.tag == TYPE.TorchOp and node.extra_fields.sequence_number >= 0]
        first = min(node.extra_fields.sequence_number for node in found)
        return [(node.name, node.extra_fields.sequence_number - first) for node in found]

    assert numbers(ours) == numbers(theirs)


def test_gradients_of_another_thread_are_in_what_runs_on_the_forward_thread():
    def work():
        loss = (torch.ones(3, requires_grad=True) * 2).sum()
        with torch.profiler.record_function("outer"):
            in_thread(loss.backward)
            torch.ones(2)
        in_thread((torch.ones(1, requires_grad=True) + 1).backward)

    config = torch.profiler._ExperimentalConfig(profile_all_threads=True)
    ours, theirs = both(work, experimental_config=config)
    assert list(lines(tree(ours))) == list(lines(tree(theirs)))
    (outer,) = [node for node in tree(ours) if node.name == "outer"]
    names = [node.name for node in outer.children]
    assert "autograd::engine::evaluate_function: MulBackward0" in names and "aten::ones" in names
    assert len({node.start_tid for node in outer.children}) == 2


def test_calls_of_threads_that_begin_while_recording_are_in_events_and_not_in_the_tree(engine):
    def early():
        running.set()
        assert go.wait(60)
        called()
        done.set()
        assert end.wait(60)

    def called():
        torch.ones(2)

    running, go, done, end = (threading.Event() for _ in range(4))
    thread = threading.Thread(target=early)
    thread.start()
    assert running.wait(60)
    before = {each.native_id for each in threading.enumerate()}
    vestige.install()
    with torch.profiler.profile(with_stack=True) as prof:
        go.set()
        assert done.wait(60)
        in_thread(called)
    end.set()
    thread.join()
    calls = [node for node in nodes(prof) if node.tag == TYPE.PyCall]
    # includes threads of earlier tests, such as the thread of torch's compiler
    shown = {node.start_tid for node in calls}
    assert {threading.get_native_id(), thread.native_id} <= shown <= before
    assert [node.start_tid for node in calls if node.name.endswith(": called")] == [thread.native_id]
    operators = [node for node in nodes(prof) if node.name == "aten::ones"]
    assert [node.parent is None for node in operators] == [False, True]
    assert sum(event.name.endswith(": called") for event in prof.events()) == 2


def test_callers_are_the_functions_that_call(engine):
    ours = recorded(step, True, with_stack=True)
    for node in nodes(ours):
        if node.tag in (TYPE.PyCall, TYPE.PyCCall):
            above = node.parent
            while above is not None and above.tag != TYPE.PyCall:
                above = above.parent
            if above is not None:
                assert node.extra_fields.caller.function_name == above.extra_fields.callsite.function_name
    made = next(node for node in nodes(ours) if node.name.endswith(": step") and "test_torch_tree" in node.name)
    site = made.extra_fields.callsite
    assert (site.function_name, site.line_number) == ("step", step.__code__.co_firstlineno)
    assert plain(made.name) == f"{site.file_name}({site.line_number}): step"


def test_tensors_have_no_numbers_where_memory_is_not_recorded():
    for prof in both(step, record_shapes=True):
        tensors = [
            each
            for node in nodes(prof)
            if node.tag == TYPE.TorchOp
            for each in node.extra_fields.inputs
            if isinstance(each, _profiler._TensorMetadata)
        ]
        assert tensors and {each.id for each in tensors} == {None}
        assert all(each.impl_ptr for each in tensors)


def test_a_tensors_address_is_not_given_to_another():
    def work():
        for _ in range(200):
            torch.ones(1)

    ours = recorded(work, True, profile_memory=True, record_shapes=True)
    filled = [node.extra_fields.inputs[0] for node in nodes(ours) if node.name == "aten::fill_"]
    assert len({each.impl_ptr for each in filled}) == len(filled) == 200


def test_a_tensors_address_is_its_own_where_many_are_used_again_and_again():
    kept = [torch.ones(1) for _ in range(600)]  # more than a thread remembers

    def work():
        for _ in range(10):
            for each in kept:
                each.neg()

    ours = recorded(work, True, profile_memory=True, record_shapes=True)
    inputs = [node.extra_fields.inputs[0].impl_ptr for node in nodes(ours) if node.name == "aten::neg"]
    assert inputs == [each._cdata for each in kept] * 10
    seen = [weakref.ref(each) for each in kept]
    kept.clear()
    gc.collect()
    assert not any(each() for each in seen)


def test_whether_a_tensor_requires_a_gradient_is_told():
    x, y = torch.ones(2, requires_grad=True), torch.ones(2)
    ours = recorded(lambda: torch.add(x, y), True, record_shapes=True)
    inputs = next(node for node in nodes(ours) if node.name == "aten::add").extra_fields.inputs
    assert [each.requires_grad for each in inputs[:2]] == [True, False]


def test_each_cycle_has_its_own_tree():
    vestige.install()
    kept = []

    def ready(prof):
        kept.append([node.name for node in nodes(prof) if node.name in ("aten::sin", "aten::cos")])

    plan = torch.profiler.schedule(wait=0, warmup=0, active=1, repeat=2)
    with torch.profiler.profile(schedule=plan, on_trace_ready=ready) as prof:
        torch.ones(1).sin()
        prof.step()
        torch.ones(1).cos()
        prof.step()
    assert kept == [["aten::sin"], ["aten::cos"]]


def test_the_trace_begins_where_its_first_window_does():
    ours, _ = both(step)
    start = ours.profiler.kineto_results.trace_start_ns()
    assert all(start <= node.start_time_ns for node in nodes(ours))


# ---- torch's own modules on it -----------------------------------------------------


def test_memory_is_classified_as_by_torch():
    def categories(prof):
        profile = prof._memory_profile()
        found = {}
        for _, action, (key, version), size in profile.timeline:
            if action != _memory_profiler.Action.DESTROY:
                category = profile._categories.get(key, version)
                found[category] = found.get(category, 0) + size
        return {category: found[category] for category in found if category is not None}

    ours, theirs = both(step, **ALL)
    assert categories(ours) == categories(theirs)
    assert _memory_profiler.Category.OPTIMIZER_STATE in categories(ours)


has_patterns = pytest.mark.skipif(_pattern_matcher is None, reason="torch.profiler._pattern_matcher is gone")


@has_patterns
def test_patterns_are_found_as_by_torch():
    def work():
        x = torch.ones(7, 7)
        for _ in range(10):
            x = x * x
        for i in range(7):
            x[i] = 2.0
        model = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4))
        loss = model(torch.ones(1, 3, 8, 8)).sum()
        loss.backward()
        torch.optim.Adam(model.parameters(), foreach=False).step()
        for parameter in model.parameters():
            parameter.grad.zero_()
        torch.matmul(torch.ones(3, 3), torch.ones(3, 3))

    def matches(prof):
        kinds = [
            each
            for each in vars(_pattern_matcher).values()
            if isinstance(each, type)
            and issubclass(each, _pattern_matcher.Pattern)
            and each not in (_pattern_matcher.Pattern, _pattern_matcher.NamePattern)
        ]
        assert len(kinds) >= 8
        return {kind.__name__: len(kind(prof).matched_events()) for kind in kinds}

    ours, theirs = both(work, record_shapes=True, with_stack=True)
    assert matches(ours) == matches(theirs)
    assert any(matches(ours).values())


@has_patterns
def test_the_report_of_all_patterns_runs(capsys):
    ours = recorded(step, True, record_shapes=True, with_stack=True)
    _pattern_matcher.report_all_anti_patterns(ours, print_enable=True)
    assert "TorchTidy Report" in capsys.readouterr().out


@pytest.mark.skipif(not hasattr(_utils, "BasicEvaluation"), reason="torch.profiler._utils has no BasicEvaluation")
def test_computed_metrics_are_those_of_the_tree():
    ours = recorded(step, True, with_stack=True)
    evaluation = _utils.BasicEvaluation(ours.profiler)
    for key, metrics in evaluation.metrics.items():
        inside = sum(child.duration_time_ns for child in key.event.children)
        assert metrics.self_time_ns == key.event.duration_time_ns - inside
    assert evaluation.compute_queue_depth() == []
