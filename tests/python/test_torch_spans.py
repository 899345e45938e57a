"""record_function in torch.profiler's place: torch.compile, TorchScript, torch's own profilers and its modes treat it
like torch's own; every test compares the two.
"""

import subprocess
import sys
import textwrap

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed for this Python")

from torch.autograd import profiler, profiler_legacy

import vestige
from beside import beside

pytestmark = pytest.mark.filterwarnings("ignore")


def block(x):
    with torch.profiler.record_function("inside"):
        y = torch.cos(x)
    return y + 1


# ---- torch.compile ---------------------------------------------------------------

COMPILED = """
    import sys
    import vestige

    order = sys.argv[1]
    if order == "before torch":
        vestige.install()
    import torch
    if order == "after torch":
        vestige.install()
    assert "torch._dynamo" not in sys.modules
    import torch._dynamo
    if order == "after dynamo":
        vestige.install()
    from torch.autograd import profiler

    def block(x):
        y = x.sin()
        with torch.profiler.record_function("inside", "text"):
            y = y.cos()
        return y + 1

    def broken(x):
        with torch.profiler.record_function("inside"):
            y = x.cos()
            torch._dynamo.graph_break()
            y = y.cos()
        return y + 1

    def profiled(x):
        with torch.profiler.profile(), profiler.profile():
            return x.sin()

    class Decorated:
        def __init__(self):
            self.__name__ = "decorated"
            self.ours = torch.profiler.record_function("name")(lambda x: x.sin())
            self.theirs = profiler.record_function("name")(lambda x: x.sin())
            self.held, self.held_theirs = torch.profiler.record_function("held"), profiler.record_function("held")

        def __call__(self, x):
            with self.held, self.held_theirs, profiler.record_function("optimizer"):
                return self.ours(x) + self.theirs(x)

    def graphs_of(function, fullgraph):
        found = []
        torch._dynamo.reset()
        def keep(module, inputs):
            found.append(module.code)
            return module
        x = torch.arange(3.0)
        compiled = torch.compile(function, fullgraph=fullgraph, backend=keep)
        assert torch.equal(compiled(x), function(x))
        return found, compiled

    def all_graphs():
        decorated = Decorated()
        functions = (block, decorated, profiled)
        graphs = [graphs_of(function, full)[0] for function in functions for full in (True, False)]
        graphs.append(graphs_of(broken, False)[0])
        with torch._dynamo.config.patch(capture_profiler_record_function=True):
            graphs.append(graphs_of(block, True)[0])
        return graphs

    scripted = torch.jit.script(block)
    assert torch.equal(scripted(torch.arange(3.0)), block(torch.arange(3.0)))
    ours = all_graphs()
    with torch._dynamo.config.patch(capture_profiler_record_function=True):
        compiled = graphs_of(block, True)[1]
        with torch.profiler.profile() as prof:
            compiled(torch.arange(3.0))
        assert [event.name for event in prof.events() if event.is_user_annotation].count("inside") == 1
    assert torch.profiler.record_function is vestige.record_function
    vestige.uninstall()
    assert torch.profiler.record_function is profiler.record_function
    theirs = all_graphs()
    assert [len(graphs) for graphs in theirs] == [1, 1, 1, 1, 1, 1, 2, 1]
    assert ours == theirs
"""


@pytest.mark.parametrize("order", ["before torch", "after torch", "after dynamo"])
def test_compiled_functions_have_torchs_graphs_when_installed(order, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(textwrap.dedent(COMPILED))
    done = subprocess.run([sys.executable, program, order], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


# ---- TorchScript ----------------------------------------------------------------


def test_a_function_with_a_span_is_scripted_as_with_torchs():
    def run():
        def fresh(x):
            with torch.profiler.record_function("inside", "text"):
                y = torch.cos(x)
            return y + 1

        scripted, x = torch.jit.script(fresh), torch.ones(3)
        result = scripted(x)
        with profiler.profile() as prof:
            scripted(x)
        return str(scripted.graph), result.tolist(), [event.name for event in prof.function_events]

    theirs, ours = beside(run)
    assert ours == theirs
    assert "inside" in ours[2]


# ---- who else sees spans ---------------------------------------------------------


@pytest.mark.parametrize("kind", [profiler.profile, profiler_legacy.profile])
def test_torchs_own_profilers_see_spans_while_vestige_does_not_record(kind):
    def run():
        decorated = torch.profiler.record_function("decorated")(lambda: torch.ones(2))
        with kind() as prof:
            block(torch.ones(3))
            with torch.profiler.record_function("outer", "text"), torch.profiler.record_function("inner"):
                decorated()
        with torch.profiler.record_function("afterwards"):
            pass
        return [(event.name, event.scope, event.cpu_parent and event.cpu_parent.name) for event in prof.function_events]

    theirs, ours = beside(run)
    assert ours == theirs
    assert {"inside", "outer", "inner", "decorated"} <= {name for name, _, _ in ours}


def test_a_span_that_ends_with_a_future_does_so_for_torchs_own_profiler():
    def run():
        future = torch.futures.Future()
        with profiler.profile() as prof:
            with torch.profiler.record_function("until then") as span:
                span._call_end_callbacks_on_future(future)
                with pytest.raises(RuntimeError, match="can only be called once"):
                    span._call_end_callbacks_on_future(future)
            torch.ones(2)
            future.set_result(1)
        return sorted(event.name for event in prof.function_events)

    theirs, ours = beside(run)
    assert ours == theirs
    assert "until then" in ours


def test_an_exception_passes_through_a_span_that_torchs_own_profiler_sees():
    def run():
        with profiler.profile() as prof, pytest.raises(KeyError), torch.profiler.record_function("fails"):
            raise KeyError
        return [event.name for event in prof.function_events]

    theirs, ours = beside(run)
    assert ours == theirs == ["fails"]


def test_modes_that_see_every_operator_see_spans():
    from torch.fx.experimental.proxy_tensor import make_fx

    theirs, ours = beside(lambda: make_fx(block)(torch.ones(3)).code)
    assert ours == theirs
    assert "inside" in ours


def test_a_span_that_a_mode_sees_is_recorded_once():
    from torch.fx.experimental.proxy_tensor import make_fx

    vestige.install()
    try:
        with vestige.profile() as prof:
            code = make_fx(block)(torch.ones(3)).code
    finally:
        vestige.uninstall()
    assert "inside" in code
    assert [event.name for event in prof.events()].count("inside") == 1


def test_spans_are_vestiges_alone_before_install_and_after_uninstall():
    def seen():
        with profiler.profile() as prof, vestige.record_function("ours"):
            torch.ones(2)
        return "ours" in [event.name for event in prof.function_events]

    assert not seen()
    vestige.install()
    try:
        assert seen()
    finally:
        vestige.uninstall()
    assert not seen()
    assert not hasattr(vestige.record_function, "_jit_override_qualname")
