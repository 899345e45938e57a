"""_core.pyi agrees with the extension: names are compared with the module's, keywords with the extension's source."""

import ast
import re
from pathlib import Path

import pytest

from vestige import _core

ROOT = Path(__file__).resolve().parents[2]
PARTS = ("_core.pyi", "_core_views.pyi")
STUB = ast.parse("\n".join((ROOT / "python" / "vestige" / part).read_text() for part in PARTS))
# Members that typeshed declares for every struct sequence.
STRUCTSEQ = {"n_fields", "n_sequence_fields", "n_unnamed_fields"}
CLASSES = {node.name: node for node in STUB.body if isinstance(node, ast.ClassDef) and hasattr(_core, node.name)}
QUOTED = re.compile('"([^"]*)"')
# A call of PyArg_ParseTupleAndKeywords: the names and the format, which ends with the function's name.
PARSED = re.compile(
    r'static char \*names\[\]\s*=\s*\{([^}]*)\};(?:(?!\n\}\n).)*?ParseTupleAndKeywords\([^"]*((?:"[^"]*"\s*)+)',
    re.DOTALL,
)


def declared(body):
    """Returns the names that are declared for callers; aliases of types belong to the stub alone."""
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, ast.AnnAssign) and ast.unparse(node.annotation) != "TypeAlias":
            yield node.target.id


def test_the_stub_names_all_that_the_extension_has_and_nothing_else():
    assert set(declared(STUB.body)) == {
        name for name in vars(_core) if name == "__version__" or not name.startswith("__")
    }


@pytest.mark.parametrize("name", CLASSES)
def test_the_stub_names_all_members_of(name):
    members = {member for member in vars(getattr(_core, name)) if not member.startswith("__")}
    inherited = (
        STRUCTSEQ if "structseq" in {ast.unparse(base).partition("[")[0] for base in CLASSES[name].bases} else set()
    )
    assert {member for member in declared(CLASSES[name].body) if not member.startswith("__")} | inherited == members


def test_arguments_have_the_names_that_the_stub_gives_them():
    sources = [path.read_text() for path in sorted((ROOT / "python" / "ext").rglob("*.c"))]
    parsed = [found for source in sources for found in PARSED.findall(source)]
    assert len(parsed) > 25
    different = {}
    for names, form in parsed:
        function = "".join(QUOTED.findall(form)).partition(":")[2]
        given, wanted = QUOTED.findall(names), list(signatures(function))
        if given not in wanted:
            different[function] = given, wanted
    assert different == {}


def signatures(function):
    """Returns the names of the arguments of each function or class with this name in the stub."""
    for node in ast.walk(STUB):
        if isinstance(node, ast.FunctionDef) and node.name == function:
            yield arguments(node)
        elif isinstance(node, ast.ClassDef) and node.name == function:
            for inner in node.body:
                if isinstance(inner, ast.FunctionDef) and inner.name in ("__init__", "__new__"):
                    yield arguments(inner)


def arguments(node):
    found = node.args.posonlyargs + node.args.args + node.args.kwonlyargs
    return [one.arg for one in found if one.arg not in ("self", "cls")]
