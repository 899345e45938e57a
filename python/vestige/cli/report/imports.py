"""Imports, from the tree of calls in which they are folded: modules by their time, the importer of each, and the
slowest chain. Used by the report after `vestige run`, so it imports little.
"""

from __future__ import annotations

from vestige.base.quantities import duration, plural
from vestige.base.terminal import Paint
from vestige.reading.kinds import PYTHON
from vestige.reading.layout import show

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TextIO

    from .command import Reading
    from .data import Node

WORD = "import "
FAILED = " (failed)"


class Module:
    """The sums of a module. Modules without a name that one module imports are merged."""

    __slots__ = ("calls", "first_by", "name", "self_ns", "total_ns")

    def __init__(self, name: str, first_by: str) -> None:
        self.name = name
        self.first_by = first_by
        self.calls = self.self_ns = self.total_ns = 0

    @property
    def module(self) -> str:
        return self.name.removesuffix(FAILED)

    @property
    def failed(self) -> bool:
        return self.name.endswith(FAILED)

    @property
    def is_named(self) -> bool:
        return not self.name.startswith("(")


class Imports:
    """All imports of a tree. `self_ns` of a module includes the calls that its code makes, but not the modules that it
    imports.
    """

    def __init__(self, root: Node) -> None:
        self.modules: dict[tuple[str, str], Module] = {}
        self.total_ns = 0  # time of imports that are inside no other import
        self.chain: list[Module] = []  # the slowest import, the slowest import inside that, and so on
        self.chain_by = ""  # the function or module in which the chain begins
        self._slowest: dict[int, Node] = {}  # by id of an import's node: the slowest import inside
        self._of_node: dict[int, Module] = {}
        first: Node | None = None
        work: list[tuple[Node, Node, Node | None, dict[str, Node]]] = [
            (child, root, None, {}) for child in reversed(list(root.children.values()))
        ]
        while work:
            node, above, outer, open_ = work.pop()
            if node.imports:
                self._add(node, above, outer, open_)
                if outer is None and (first is None or node.total_ns > first.total_ns):
                    first, self.chain_by = node, _shown(above)
                outer, open_ = node, {**open_, node.imports: node}
            # import_module() and similar functions import for their callers.
            by = node if node.imports or (node.kind == PYTHON and node.library != "importlib") else above
            work.extend((child, by, outer, open_) for child in reversed(list(node.children.values())))
        while first is not None:
            self.chain.append(Module(_shown(first), ""))
            self.chain[-1].total_ns = first.total_ns
            first = self._slowest.get(id(first))

    def _add(self, node: Node, above: Node, outer: Node | None, open_: dict[str, Node]) -> None:
        module = self._of(node, above)
        module.calls += node.calls
        module.self_ns += node.total_ns
        if node.imports not in open_:
            module.total_ns += node.total_ns
        else:  # the import around it imported the parent first, which imported the module: both are one
            inside = [*open_.values(), node][list(open_).index(node.imports) + 1]
            module.calls -= open_[node.imports].calls
            module.total_ns -= inside.total_ns - node.total_ns
            module.first_by = _shown(above)
        if outer is None:
            self.total_ns += node.total_ns
            return
        self._of_node[id(outer)].self_ns -= node.total_ns
        slowest = self._slowest.get(id(outer))
        if slowest is None or node.total_ns > slowest.total_ns:
            self._slowest[id(outer)] = node

    def _of(self, node: Node, above: Node) -> Module:
        name, by = _shown(node), _shown(above)
        key = (name, by if name.startswith("(") else "")
        module = self.modules.get(key)
        if module is None:
            module = self.modules[key] = Module(name, by)
        self._of_node[id(node)] = module
        return module


def _shown(node: Node) -> str:
    return node.imports.removeprefix(WORD) if node.imports else node.shown or "(no function)"


def show_imports(imports: Imports, reading: Reading, rows: int, out: TextIO) -> None:
    modules = reading.rows()
    if not modules:
        print("no import was recorded", file=out)
        return
    share = min(imports.total_ns / (reading.whole_ns or 1), 1.0)
    count = sum(module.calls for module in modules)
    print(f"{plural(count, 'import')}, {duration(imports.total_ns)}, {share:.1%} of the time\n", file=out)
    show(reading.columns, modules, rows, out, more="more modules")
    print("\n" + Paint(out)(f"the slowest chain, begun by {imports.chain_by}", "head"), file=out)
    for depth, link in enumerate(imports.chain):
        print(f"{duration(link.total_ns):>8}  {'  ' * min(depth, 20)}{link.name}", file=out)
