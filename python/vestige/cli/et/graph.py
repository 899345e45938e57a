"""The nodes of an execution trace as a graph: checks that ids, parents, threads and roots are consistent. Keeps one or
two hundred bytes per node, so that the check of a million nodes needs little memory.
"""

from __future__ import annotations

import sys
from array import array

from .node import PROCESS, THREAD

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .node import Facts

    Say = Callable[[int | None, str], None]

UNKNOWN, GOOD, BAD, ON_PATH = range(4)


class Graph:
    """Collects nodes one by one, and checks them at the end. A node is identified by its place here."""

    def __init__(self) -> None:
        self.places: dict[int, int] = {}  # places by id
        self.ids = array("Q")
        self.parents = array("Q")  # ids of parents, by place
        self.rf_ids = array("Q")
        self.tids = array("Q")
        self.scopes = bytearray()
        self.names: list[str] = []
        self.tensors: set[int] = set()  # ids of tensors and storages
        self._fw_parents: dict[int, int] = {}
        self._roots: list[int] = []
        self._broken = 0  # nodes that could not be read

    def add(self, facts: Facts | None, say: Say) -> None:
        if facts is None:
            self._broken += 1
            return
        place = len(self.ids)
        first = self.places.setdefault(facts.id, place)
        self.ids.append(facts.id)
        self.parents.append(facts.parent)
        self.rf_ids.append(facts.rf_id)
        self.tids.append(facts.tid)
        self.scopes.append(min(facts.scope, 255))
        self.names.append(sys.intern(facts.name))
        if facts.fw_parent:
            self._fw_parents[place] = facts.fw_parent
        if facts.name == PROCESS:
            self._roots.append(place)
        if first != place:
            say(facts.id, f"is the id of two nodes, {self.names[first]} and {facts.name}")

    @property
    def threads(self) -> int:
        return self.names.count(THREAD)

    def is_root(self, place: int) -> bool:
        return self.names[place] in (PROCESS, THREAD)

    def check(self, say: Say) -> None:
        """Checks everything that needs the whole graph. Consequences of a reported defect are not reported again. If
        some nodes could not be read, no node is reported as missing, because it may be among them.
        """
        self._check_root(say)
        states = self._check_parents(say)
        self._check_threads(states, say)
        self._check_records(say)
        for place, number in self._fw_parents.items():
            if number not in self.places and not self._broken:
                say(self.ids[place], f"fw_parent {number} does not exist")
        for number in sorted(self.tensors & self.places.keys()):
            say(number, "is also the id of a tensor or of a storage")

    def _check_root(self, say: Say) -> None:
        for place in self._roots[:1]:
            if self.ids[place] != 1:
                say(self.ids[place], "is the process's root, so its id must be 1")
            elif self.parents[place] != 1:
                say(1, f"is the process's root, so its ctrl_deps must be 1, not {self.parents[place]}")
        for place in self._roots[1:]:
            if self.places[self.ids[place]] == place:
                say(self.ids[place], f"is a second root of the process, after node {self.ids[self._roots[0]]}")
        if not self._roots and not self._broken:
            say(None, f"there is no root of the process, {PROCESS}")

    def _check_parents(self, say: Say) -> bytearray:
        """Checks that each node can be reached from the root. Keeps a state for each place."""
        states = bytearray(len(self.ids))
        for place in self._roots:
            states[place] = GOOD
        lost: dict[int, list[int]] = {}  # place of a node without an existing parent → nodes below it
        ends: dict[int, int] = {}  # place of a bad node → place where its path ends
        for start in range(len(self.ids)):
            path = []
            place = start
            while states[place] == UNKNOWN:
                states[place] = ON_PATH
                path.append(place)
                parent = self.places.get(self.parents[place])
                if parent is None:
                    lost[place] = []
                    ends[place] = place
                    break
                place = parent
            else:
                if states[place] == ON_PATH:
                    self._tell_cycle(path[path.index(place) :], say)
                    ends[place] = place
                elif states[place] == GOOD:
                    for one in path:
                        states[one] = GOOD
                    continue
            end = ends[place]
            for one in path:
                states[one] = BAD
                ends[one] = end
                if one != end and end in lost:
                    lost[end].append(one)
        if not self._broken:
            for place, below in lost.items():
                rest = f"; {len(below):,} more below it cannot be reached from the root" if below else ""
                if not (self.names[place] == THREAD and not self._roots):
                    say(self.ids[place], f"ctrl_deps {self.parents[place]} does not exist{rest}")
        return states

    def _tell_cycle(self, places: list[int], say: Say) -> None:
        least = places.index(min(places, key=lambda place: self.ids[place]))
        around = [self.ids[place] for place in places[least:] + places[:least]]
        shown = " → ".join(map(str, [*around[:6], *(["…"] if len(around) > 6 else []), around[0]]))
        say(around[0], f"is below itself: {shown}")

    def _check_threads(self, states: bytearray, say: Say) -> None:
        """Checks that a node has its thread's number, and is below that thread's root."""
        threads: dict[int, int] = {}
        above = array("q", bytes(8 * len(self.ids)))  # place of the thread's root plus one; -1: none
        for place, name in enumerate(self.names):
            if name == PROCESS:
                above[place] = -1
            elif name == THREAD:
                above[place] = place + 1
                other = threads.setdefault(self.tids[place], place)
                if other != place and states[place] == GOOD:
                    say(self.ids[place], f"is a second root of thread {self.tids[place]}, after node {self.ids[other]}")
                if states[place] == GOOD and self.names[self.places[self.parents[place]]] != PROCESS:
                    say(self.ids[place], f"is a thread's root, so its ctrl_deps must be 1, not {self.parents[place]}")
        for start in range(len(self.ids)):
            if states[start] != GOOD:
                continue
            path = []
            place = start
            while not above[place]:
                path.append(place)
                place = self.places[self.parents[place]]
            for one in path:
                above[one] = above[place]
            if above[start] < 0 and self.names[start] != PROCESS:
                if self.names[self.places[self.parents[start]]] == PROCESS:
                    say(self.ids[start], "is below the process's root, but below no thread's")
            elif above[start] > 0 and self.tids[start] != self.tids[above[start] - 1]:
                root = above[start] - 1
                thread = f"that of its thread (node {self.ids[root]}) is {self.tids[root]}"
                say(self.ids[start], f"tid is {self.tids[start]}, but {thread}")

    def _check_records(self, say: Say) -> None:
        """Checks that each operator has a record function of its own."""
        seen: dict[int, int] = {}
        for place, rf_id in enumerate(self.rf_ids):
            if self.is_root(place):
                if rf_id:
                    say(self.ids[place], f"rf_id is {rf_id}, but a root has none")
            elif not rf_id:
                say(self.ids[place], "rf_id is 0")
            elif seen.setdefault(rf_id, place) != place and self.places[self.ids[place]] == place:
                say(self.ids[place], f"rf_id {rf_id} is also that of node {self.ids[seen[rf_id]]}")
