"""%%vestige and %vestige in a real IPython, and how a notebook displays our values."""

import asyncio
import re

import pytest

import vestige
from vestige import Trace, profile

interactiveshell = pytest.importorskip("IPython.core.interactiveshell")


class Notebook:
    """A shell that keeps its displays, and a function that runs cells in it."""

    def __init__(self, shell, capsys):
        self.shell = shell
        self.shell.reset(new_session=True)
        self.shown = []
        self.shell.display_pub.publish = lambda data, metadata=None, **_: self.shown.append(data)
        self._capsys = capsys

    def run(self, cell):
        """Returns whether the cell succeeded, and its output."""
        self.shown.clear()
        self.result = self.shell.run_cell(cell, store_history=True)
        out = self._capsys.readouterr()
        return self.result.success, out.out + out.err

    @property
    def html(self):
        (data,) = self.shown
        return data["text/html"]

    @property
    def text(self):
        (data,) = self.shown
        return data["text/plain"]


@pytest.fixture(scope="module")
def shell(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("IPYTHONDIR", str(tmp_path_factory.mktemp("ipython")))
        one = interactiveshell.InteractiveShell.instance(colors="nocolor")
        one.history_manager.enabled = False
        yield one
        interactiveshell.InteractiveShell.clear_instance()


@pytest.fixture
def notebook(shell, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    book = Notebook(shell, capsys)
    assert book.run("%reload_ext vestige") == (True, "")
    return book


def rows(html):
    """Returns the cells of a table, row by row."""
    found = [re.findall(r"<t[dh]>(.*?)</t[dh]>", row) for row in re.findall(r"<tr>(.*?)</tr>", html)]
    return [[re.sub(r"<[^>]*>", "", cell) for cell in row] for row in found]


def test_a_cell_runs_as_without_it_and_its_calls_are_shown(notebook):
    source = "def f(x):\n    return len(x)\ny = [f('ab') for _ in range(50)]\nprint('hi')\nsum(y)"
    done, out = notebook.run(f"%%vestige -n 100\n{source}")  # writing has functions of its own, which take longer
    assert done
    assert out.splitlines() == ["hi", "Out[2]: 100"]
    assert notebook.shell.user_ns["y"] == [2] * 50
    assert notebook.shell.user_ns["_"] == 100
    table = rows(notebook.html)
    calls = {row[-1]: row[0] for row in table[1:]}
    assert calls["&lt;built-in function len&gt;"] == "50"
    assert [count for name, count in calls.items() if name.endswith(": f")] == ["50"]
    assert not any("run_cell" in name or "notebook.py" in name or "exec" in name for name in calls), calls
    assert ["calls", "self", "%", "total", "function"] in [line.split() for line in notebook.text.splitlines()]


def test_a_statement_is_recorded_as_it_stands(notebook):
    notebook.run("def f(text, n=1): return text * n")
    done, out = notebook.run("""%vestige -n 1 f("a  -n b", n=2)""")
    assert done
    assert out == "Out[3]: 'a  -n ba  -n b'\n"
    assert len(rows(notebook.html)) == 2
    assert "1 more function" in notebook.html


def test_a_semicolon_keeps_the_value_to_itself(notebook):
    assert notebook.run("%%vestige\nlen('ab');") == (True, "")


def test_memory_has_columns_of_its_own(notebook):
    done, _ = notebook.run("%%vestige --memory\nx = [bytes(1 << 20) for _ in range(3)]")
    assert done
    head, *others = rows(notebook.html)
    assert head[4:6] == ["self mem", "all mem"]
    assert "3.00 MiB" in [row[4] for row in others]


def test_the_trace_is_kept_where_it_is_asked_for(notebook, tmp_path):
    assert notebook.run("%%vestige -o t.vst\nlen('a')")[0]
    assert "recorded in t.vst" in notebook.html
    assert Trace(str(tmp_path / "t.vst")).info()["clean"]
    done, out = notebook.run("%%vestige -o t.vst\nlen('a')")
    assert not done
    assert out.count("\n") == 1
    assert "UsageError" in out
    assert "t.vst" in out
    assert notebook.run("%%vestige -o t.vst --force\nlen('a')")[0]


def test_quiet_shows_nothing_and_the_profile_stays(notebook):
    assert notebook.run("%%vestige -q\nsorted([2, 1])\n1") == (True, "Out[2]: 1\n")
    assert notebook.shown == []
    names = [event.key for event in notebook.shell.user_ns["_vestige"].key_averages()]
    assert "<built-in function sorted>" in names


def test_exceptions_are_shown_as_without_it_and_stop_the_notebook(notebook):
    source = "def f():\n    return 1 // 0\nf()"
    plain = notebook.run(f"# %%vestige\n{source}")  # so lines are those of the whole cell
    traced = notebook.run(f"%%vestige\n{source}")
    assert not traced[0]
    assert re.sub(r"In\[\d\]", "In[N]", traced[1]) == re.sub(r"In\[\d\]", "In[N]", plain[1])
    assert "up to ZeroDivisionError" in notebook.html
    assert isinstance(notebook.result.error_in_exec, ZeroDivisionError)
    assert notebook.run("%%vestige\nlen('a');") == (True, "")  # a later cell can record again


def test_a_cell_that_does_not_compile_is_shown_as_without_it(notebook):
    plain = notebook.run("# %%vestige\nx = = 1")
    traced = notebook.run("%%vestige\nx = = 1")
    assert not traced[0]
    assert re.sub(r"In\[\d\]", "In[N]", traced[1]) == re.sub(r"In\[\d\]", "In[N]", plain[1])


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("%%vestige -n none\n1", "-n takes a number of rows, not 'none'; see %vestige?"),
        ("%%vestige --bogus\n1", "option --bogus not recognized"),
        ("%%vestige f()\n1", "%%vestige takes options alone, not 'f()'; see %vestige?"),
        ("%vestige -n 3", "%vestige needs a statement to record, %%vestige a cell; see %vestige?"),
        ("%%vestige -o no/such/t.vst\n1", "No such file or directory"),
        ("%%vestige -q\n%vestige -q len('a')", "a recording is already running"),
    ],
)
def test_wrong_use_is_one_line(notebook, cell, message):
    done, out = notebook.run(cell)
    assert not done
    assert out.count("\n") == 1
    assert out.startswith("UsageError: ")
    assert message in out


def test_magics_shell_commands_and_await_work_inside(notebook):
    cell = "%%vestige -q\nimport asyncio\nout = !echo shell\nawait asyncio.sleep(0)\n%who_ls str\nout[0]"
    assert notebook.run(cell) == (True, "Out[2]: 'shell'\n")


def test_await_where_a_loop_runs_is_refused_before_anything_is_recorded(notebook):
    async def cell():
        return notebook.run("%%vestige\nimport asyncio\nran = True\nawait asyncio.sleep(0)")

    done, out = asyncio.run(cell())
    assert not done
    assert out.startswith("UsageError: %%vestige cannot record `await`")
    assert notebook.shown == []
    assert "ran" not in notebook.shell.user_ns


def test_threads_that_the_cell_starts_are_counted(notebook):
    done, _ = notebook.run(
        "%%vestige -n 100\nimport threading\ndef work(): return abs(-1)\n"
        "t = threading.Thread(target=work); t.start(); t.join()"
    )
    assert done
    assert {row[-1]: row[0] for row in rows(notebook.html)[1:]}["&lt;built-in function abs&gt;"] == "1"


WAITS = "import time\ndef wait():\n    time.sleep(0.2)\n"


def test_findings_and_the_flame_graph_appear_with_places_in_cells(notebook):
    assert notebook.run(WAITS) == (True, "")
    assert notebook.run("%%vestige\ndef twice():\n    wait()\n    wait()\n\ntwice()")[0]
    finding = next(line for line in notebook.text.splitlines() if line.startswith("•"))
    assert finding.startswith("• No thread worked for ") and "In [2]:3: wait" in notebook.text
    assert "In [2]:3: wait" in notebook.html and "ipython-input" not in notebook.html + notebook.text
    titles = re.findall(r"<title>(.*?) \(", notebook.html)
    assert titles[:2] == ["In [3]:1: &lt;module&gt;", "In [3]:2: twice"] and set(titles[2:]) == {
        "In [2]:2: wait",
        "sleep",
    }
    assert "<script" not in notebook.html
    called = [row[-1] for row in rows(notebook.html)[1:]]
    assert "In [3]:2: twice" in called and "In [2]:2: wait" in called


def test_a_statement_counts_lines_from_its_own(notebook):
    assert notebook.run(WAITS) == (True, "")
    assert notebook.run("%vestige wait()")[0]
    assert "In [2]:3: wait" in notebook.text and "In [3]:1: &lt;module&gt;" in notebook.html


def test_files_of_a_kernels_cells_are_written_as_cells_too(notebook, monkeypatch):
    named = notebook.shell.compile
    monkeypatch.setattr(named, "get_code_name", lambda raw, code, number: f"/tmp/ipykernel_9/{abs(hash(code))}.py")
    assert notebook.run(WAITS) == (True, "")
    assert notebook.run("%%vestige\ndef twice():\n    wait()\n    wait()\n\ntwice()")[0]
    assert "In [2]:3: wait" in notebook.text and "In [3]:2: twice" in notebook.text
    assert "ipykernel_9" not in notebook.text + notebook.html


def test_without_a_cause_a_cell_says_so(notebook):
    assert notebook.run("%%vestige\nsum(sum(range(n)) for n in range(3000))")[0]
    assert "No cause stands out." in notebook.text and "No cause stands out." in notebook.html


def test_threads_from_before_the_cell_are_no_finding_of_the_cell(notebook):
    before = "import threading\nend = threading.Event()\nt = threading.Thread(target=end.wait)\nt.start()"
    assert notebook.run(before)[0]
    try:
        assert notebook.run("%%vestige\nsum(sum(range(n)) for n in range(3000))")[0]
        assert "wait" not in notebook.text and "wait" not in re.sub(
            r"<style>.*?</style>|white-space", "", notebook.html
        )
    finally:
        notebook.run("end.set(); t.join()")


# ---- values ------------------------------------------------------------------


def recorded():
    def f(n):
        return n if n < 2 else f(n - 1) + f(n - 2)

    with profile() as prof:
        f(10)
    return prof


def test_a_profile_shows_its_functions(notebook):
    notebook.shell.user_ns["prof"] = recorded()
    assert notebook.run("prof")[0]
    html = notebook.shell.user_ns["prof"]._repr_html_()
    (row,) = [row for row in rows(html) if row[-1].endswith(": recorded.&lt;locals&gt;.f")]
    assert row[0] == "177"
    assert "<script" not in html
    assert "http" not in html
    assert profile()._repr_html_() is None


def test_averages_and_events_show_the_same_names():
    prof = recorded()
    averages, events = prof.key_averages()._repr_html_(), prof.events()._repr_html_()
    assert rows(averages) == rows(events)
    assert any(row[0] == "177" for row in rows(averages))
    assert prof.key_averages()[:0] == []


def test_opened_traces_show_the_functions_of_all(tmp_path):
    for number in range(3):
        with profile(output=tmp_path / f"{number}.vst"):
            abs(number)
    html = vestige.open(tmp_path)._repr_html_()
    assert "3 processes" in html
    assert {row[-1]: row[0] for row in rows(html)}["&lt;built-in function abs&gt;"] == "3"
