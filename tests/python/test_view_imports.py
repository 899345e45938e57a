"""The viewer folds imports as reports do: every span of its pictures is compared with replay's spans, folded in the
test.
"""

import collections
import subprocess

import pytest

import vestige
from arrow_reader import rows_of
from conftest import COMMAND
from handmade import define, definitions, enter, escape, leave, records, thread, trace
from vestige import Trace
from vestige._core import View

pytestmark = pytest.mark.any_python

IMPORT, MACHINERY, BESIDE = 256, 512, 64
IDS = 8  # the first id of import states, behind the ids of functions; modules' ids follow
WHAT = {"(extension module)": 2, "(built-in module)": 3, "(namespace package)": 4, "(failed)": 5, "(unknown module)": 6}
PROGRAM = """\
import asyncio, http.client, importlib, xml.dom.minidom
importlib.import_module("email.mime.text")
__import__("sqlite3")
try:
    import nothing_here
except ImportError:
    pass
def f(n):
    return f(n - 1) if n else 0
f(20)
for _ in range(3):
    importlib.import_module("json")
"""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("folded")
    (folder / "program.py").write_text(PROGRAM)
    subprocess.run([COMMAND, "run", "-q", "-o", "t.vst", "program.py"], cwd=folder, check=True)
    return folder / "t.vst"


def names_of(path):
    """Returns what an id of a picture stands for."""
    opened = Trace(str(path))
    functions = opened.functions()
    base = len(functions) - 1

    def name(number):
        if number <= base:
            return functions[number][1]
        what = number - base
        if what > IDS + base:
            return opened.import_name(WHAT["(failed)"], what - IDS - base)
        return opened.import_name(1, what - IDS) if what >= IDS else opened.import_name(what)

    return name


def folded(path):
    """Returns depth, start and name of each visible span, according to the table of spans."""
    with vestige.open(str(path)) as traces:
        spans = {row["span"]: row for row in rows_of(traces.span) if not row["flags"] & BESIDE}
    hidden = {0: 0, None: 0}
    for number, row in sorted(spans.items()):
        hidden[number] = hidden[row["parent"]] + bool(row["flags"] & MACHINERY)
    for number, row in spans.items():
        if not row["flags"] & MACHINERY:
            name = f"import {row['imports']}" if row["flags"] & IMPORT else None
            yield row["depth"] - hidden[number], row["start_ns"], row["duration_ns"], name, row["func"]


def view_of(path, **options):
    return View(str(path), keep=False, fold_imports=True, **options)


def test_every_span_of_the_picture_is_where_replay_folds_it(recorded):
    view, name = view_of(recorded), names_of(recorded)
    functions = Trace(str(recorded)).functions()
    wanted = list(folded(recorded))
    assert sum(each[3] is not None for each in wanted) > 50
    info = view.info()
    assert info["spans"] == len(wanted)
    for depth, start, _, imports, function in wanted[:: max(len(wanted) // 300, 1)] + [w for w in wanted if w[3]]:
        span = view.span_at(1, depth, start)
        assert span["start_ns"] == start
        assert name(span["id"]) == (imports or functions[function][1]), (depth, start)
    (one,) = view.threads()
    assert one["levels"] == 1 + max(depth for depth, *_ in wanted)
    unfolded = View(str(recorded), keep=False)
    assert unfolded.threads()[0]["levels"] > one["levels"] + 20
    view = unfolded = None


def test_the_own_time_of_an_import_is_that_of_what_is_folded_into_it(recorded):
    view = view_of(recorded)
    wanted = list(folded(recorded))
    inner = collections.Counter()
    by_depth = sorted(wanted, key=lambda each: each[1])
    open_ = []
    for each in by_depth:
        while open_ and open_[-1][0] >= each[0]:
            open_.pop()
        if open_:
            inner[open_[-1]] += each[2]
        open_.append(each)
    imports = [each for each in wanted if each[3]]
    for each in imports[:: max(len(imports) // 40, 1)]:
        depth, start, duration, *_ = each
        assert view.span_at(1, depth, start)["self_ns"] == duration - inner[each], each


def test_the_flame_graph_has_the_times_of_the_report(recorded):
    name = names_of(recorded)
    info = view_of(recorded).info()
    rows, _ = view_of(recorded).flame(info["start_ns"], info["end_ns"] + 1)
    flame = collections.Counter()
    for row in rows:
        if name(row.id).startswith("import "):
            flame[name(row.id), "count"] += row.calls
            flame[name(row.id)] += row.total_ns
    tree = collections.Counter()
    opened = Trace(str(recorded))
    for row in opened.tables(["calls"], fold_imports=True)["calls"]:
        if row.imported is not None:
            imported = opened.import_name(row.imported, row.module or 0)
            tree[imported, "count"] += row.calls
            tree[imported] += row.total_ns
    assert {key: value for key, value in flame.items() if value and "(" not in str(key)} == {
        key: value for key, value in tree.items() if "(" not in str(key)
    }


FROZEN = "<frozen importlib._bootstrap>"
ENTRIES = [
    define(1, "main"),
    define(2, "_find_and_load", FROZEN, 1),
    define(3, "_find_and_load_unlocked", FROZEN, 2),
    define(4, "exec_module", "<frozen importlib._bootstrap_external>", 3),
    define(5, "<module>", "one.py"),
    define(6, "<module>", "two.py"),
    define(7, "f", "one.py", 3),
]


def made(tmp_path, *words):
    path = tmp_path / "made.vst"
    path.write_bytes(trace(definitions(thread(), *ENTRIES), records(*words)))
    return path


def seen(path):
    view, name = view_of(path), names_of(path)
    told = []
    for depth, start, _, _, _ in sorted(folded(path), key=lambda each: each[1]):
        told.append(f"{depth} {name(view.span_at(1, depth, start)['id'])}")
    return told


def test_an_import_that_goes_on_at_the_end_has_its_name(tmp_path):
    path = made(
        tmp_path, enter(1), enter(2), enter(3), enter(4), enter(5), enter(7), leave(7), enter(2), enter(3), enter(6)
    )
    assert seen(path) == ["0 main", "1 import one", "2 f", "2 import two"]


def test_an_import_of_which_nothing_inside_was_recorded_has_its_name(tmp_path):
    """Like a trace recorded with --max-depth. An import without a name is a call of the function: the module was loaded
    before.
    """
    path = made(tmp_path, enter(1), enter(2), *escape(28, 6), leave(2), enter(2), leave(2), enter(2), *escape(28, 5))
    assert seen(path) == ["0 main", "1 import two", "1 _find_and_load", "1 import one"]
    name = names_of(path)
    info = view_of(path).info()
    rows, _ = view_of(path).flame(info["start_ns"], info["end_ns"] + 1)
    assert sorted(name(row.id) for row in rows) == ["_find_and_load", "import one", "import two", "main"]


def test_an_import_longer_than_a_batch_keeps_its_name(tmp_path):
    """The module's code ran long before the import ends, with many other records between."""
    calls = [word for _ in range(30_000) for word in (enter(7, 1), leave(7, 1))]
    path = made(
        tmp_path,
        enter(1),
        enter(2),
        enter(3),
        enter(4),
        enter(5),
        *calls,
        leave(5),
        leave(4),
        *calls,
        leave(3),
        leave(2),
    )
    view, name = view_of(path), names_of(path)
    spans = [each for each in folded(path) if each[0] < 2]
    assert [name(view.span_at(1, depth, start)["id"]) for depth, start, *_ in sorted(spans)] == ["main", "import one"]
    _, start, duration, *_ = max(spans)
    late = view.span_at(1, 1, start + duration - 2)  # found from a checkpoint behind the module's code
    assert late["start_ns"] == start and name(late["id"]) == "import one"
