"""Seeded programs under torch's execution trace observer and under ours: equal operators, inputs and parents. Our
document is also compared with our timeline, by `vestige et check`.
"""

import threading
from collections import Counter

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed for this Python")

from torch import nn
from torch.nn import functional

import vestige
from graphs import PROCESS, THREAD, attribute, read
from vestige.cli.et.command import main

pytestmark = pytest.mark.filterwarnings("ignore")


def perceptron():
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(2):
        optimizer.zero_grad()
        functional.cross_entropy(model(torch.randn(5, 8)), torch.tensor([0, 1, 2, 3, 0])).backward()
        optimizer.step()


def convolution():
    """Has lists of tensors, because the optimizer takes all parameters in one operator."""
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 2))
    optimizer = torch.optim.AdamW(model.parameters(), foreach=True)
    model(torch.randn(2, 3, 8, 8)).sum().backward()
    optimizer.step()


def recurrence_and_attention():
    output, _ = nn.LSTM(4, 6)(torch.randn(3, 2, 4))
    mixed, _ = nn.MultiheadAttention(6, 2)(output, output, output)
    mixed.mean().backward()


def views_and_changes_in_place():
    x = torch.arange(24.0).reshape(2, 3, 4)
    x.permute(2, 0, 1)[1:, :, ::2].add_(1)
    x.unbind(0)
    x.split(1)
    torch.randn(3, 1).expand(3, 5).contiguous()
    torch.as_strided(torch.randn(10), (2, 2), (3, 1), 2).mul_(2)
    x.view(torch.int32)
    torch.empty(0, 3)
    torch.cat([x, x, torch.ones(1, 3, 4)])
    torch.stack([x, x]).max(dim=0)


def values_of_many_kinds():
    for value in (float("inf"), float("-inf"), float("nan"), 1e-9, 12345.678, 3, True):
        torch.full((2,), value)
    torch.ones(2, dtype=torch.bfloat16)
    torch.zeros(2, dtype=torch.bool)
    torch.randn(3, dtype=torch.complex64).abs()
    torch.empty(3, 3, device="meta") + 1
    torch.sparse_coo_tensor(torch.tensor([[0, 1], [1, 0]]), torch.tensor([1.0, 2.0]), (2, 2)).to_dense()
    torch.quantize_per_tensor(torch.randn(3), 0.1, 0, torch.quint8).dequantize()
    functional.interpolate(torch.randn(1, 1, 4, 4), scale_factor=2, mode="bilinear")


class Double(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        return x * 2

    @staticmethod
    def backward(context, gradient):
        return gradient * 2


def functions_and_gradients_of_our_own():
    x = torch.randn(3, requires_grad=True)
    Double.apply(x).sum().backward()
    with torch.no_grad():
        x.add_(1)
    x.register_hook(lambda gradient: gradient * 2)
    (x**2).sum().backward(create_graph=True)
    with torch.profiler.record_function("an annotation", "its argument"), torch.inference_mode():
        torch.randn(2).sin()


@torch.jit.script
def scripted(x, count: int):
    for step in range(count):
        x = x * 2 + step
    return x


def script():
    scripted(torch.ones(3), 3)


PROGRAMS = (
    perceptron,
    convolution,
    recurrence_and_attention,
    views_and_changes_in_place,
    values_of_many_kinds,
    functions_and_gradients_of_our_own,
    script,
)


def traced(observer, path, program):
    torch.manual_seed(0)
    observer.register_callback(str(path))
    observer.start()
    program()
    observer.stop()
    observer.unregister_callback()
    return read(path)["nodes"]


@pytest.fixture
def both(tmp_path):
    """Returns torch's nodes and our nodes of a program."""

    def run(program):
        for _ in range(2):
            program()  # first run: one-time work happens here
        theirs = traced(torch.profiler.ExecutionTraceObserver(), tmp_path / "theirs.json", program)
        ours = traced(vestige.ExecutionTraceObserver(), tmp_path / "ours.json", program)
        assert main(["check", str(tmp_path / "ours.json")]) == 0
        return theirs, ours

    return run


def identity(node):
    """Returns the properties of a node that must be equal."""
    inputs = node["inputs"]
    return node["name"], str(inputs["shapes"]), str(inputs["types"]), attribute(node, "op_schema")


def forest(nodes):
    """Returns a tree of identities for each thread, in the order of its operators."""
    below = {}
    for node in sorted(nodes, key=lambda node: node["id"]):
        below.setdefault(node["ctrl_deps"], []).append(node)

    def grow(node):
        return identity(node), tuple(grow(child) for child in below.get(node["id"], ()))

    return Counter(grow(node)[1] for node in nodes if node["name"] == THREAD)


NO_STORAGE = ["a tensor without a storage"]


def details(node):
    """Returns the other properties, without numbers that each run assigns, digits that torch does not write, and facts
    that torch does not give for tensors without a storage.
    """
    sides = []
    for side in (node["inputs"], node["outputs"]):
        values = [_plain(value) for value in side["values"]]
        strides = [[] if value == NO_STORAGE else steps for value, steps in zip(values, side["strides"])]
        sides.append((side["shapes"], side["types"], strides, values))
    return (
        identity(node),
        sides,
        [attribute(node, name) for name in ("scope", "fw_tid", "kernel_backend", "kernel_file")],
    )


def _plain(value):
    if isinstance(value, list):
        is_tensor = len(value) == 6 and isinstance(value[5], str) and all(isinstance(v, int) for v in value[:5])
        if is_tensor:
            return ["tensor", *value[2:]] if value[1] else NO_STORAGE
        return [_plain(one) for one in value]
    return round(value, 6) if isinstance(value, float) else value


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_operators_their_inputs_and_their_parents_are_torchs(both, program):
    theirs, ours = both(program)
    mine, others = (Counter(map(identity, nodes)) for nodes in (ours, theirs))
    assert (mine - others, others - mine) == (Counter(), Counter())
    assert forest(ours) == forest(theirs)
    by_id = [sorted((n for n in nodes if n["name"] != PROCESS), key=lambda n: n["id"]) for nodes in (ours, theirs)]
    for own, other in zip(*by_id):
        assert details(own) == details(other)
    base = [min((attribute(n, "seq_id") for n in nodes if attribute(n, "seq_id") >= 0), default=0) for nodes in by_id]
    for own, other in zip(*by_id):
        mine, others = (max(attribute(n, "seq_id") - first, -1) for n, first in zip((own, other), base))
        assert mine == others, own["name"]
    places = [{node["id"]: place for place, node in enumerate(nodes)} for nodes in by_id]
    for own, other in zip(*by_id):
        assert places[0].get(attribute(own, "fw_parent")) == places[1].get(attribute(other, "fw_parent")), own["name"]


def share(nodes):
    """Returns which tensors of an operator are equal or share a storage, numbered by order of appearance."""
    found = []
    for node in sorted(nodes, key=lambda node: node["id"]):
        numbers, storages = {}, {}
        pattern = []
        for side in ("inputs", "outputs"):
            for tensor in _tensors(node[side]["values"]):
                pattern.append(
                    (numbers.setdefault(tensor[0], len(numbers)), storages.setdefault(tensor[1], len(storages)))
                )
        found.append((node["name"], pattern))
    return found


def _tensors(values):
    for value in values:
        if isinstance(value, list):
            if len(value) == 6 and isinstance(value[5], str):
                yield value
            else:
                yield from _tensors(value)


def test_views_share_their_storage_as_torchs_do(both):
    theirs, ours = both(views_and_changes_in_place)
    assert share(ours) == share(theirs)


def in_threads(count, work):
    threads = [threading.Thread(target=work) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def train_a_little():
    for _ in range(3):
        nn.Linear(4, 4)(torch.ones(2, 4)).sum().backward()


def test_threads_have_the_trees_that_torchs_have(both):
    theirs, ours = both(lambda: in_threads(8, train_a_little))
    assert forest(ours) == forest(theirs)
    assert sum(forest(ours).values()) == 8


@pytest.mark.parametrize("threads", [1, 8])
def test_the_timeline_has_the_same_operators_over_windows_that_skip_and_repeat(tmp_path, threads, capsys):
    """One document, and a timeline for each window."""
    timelines = []

    def ready(prof):
        timelines.extend(["--timeline", str(tmp_path / f"t{len(timelines)}.json.gz")])
        prof.export_chrome_trace(timelines[-1])

    observer = vestige.ExecutionTraceObserver().register_callback(str(tmp_path / "et.json.gz"))
    plan = vestige.schedule(skip_first=1, wait=1, warmup=1, active=2, repeat=2)
    with vestige.profile(schedule=plan, execution_trace_observer=observer, on_trace_ready=ready) as prof:
        for _ in range(9):
            in_threads(threads, train_a_little) if threads > 1 else train_a_little()
            prof.step()
    observer.unregister_callback()
    assert len(timelines) == 4
    code = main(["check", str(tmp_path / "et.json.gz"), *timelines])
    assert code == 0, capsys.readouterr().out
