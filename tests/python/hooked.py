"""The hooks installed in this process, found by hook_state.c, independently of vestige."""

import gc
import sys

import compiled
import vestige

state = compiled.module("hook_state", (compiled.HERE / "hook_state.c").read_text())


def types():
    """Returns all types. Walks subclasses, because the collector does not track static types."""
    found, pending = set(), [object]
    while pending:
        kind = pending.pop()
        if kind not in found:
            found.add(kind)
            pending += type.__subclasses__(kind)
    return list(found)


class Hooks:
    """The hooks of the interpreter at the time of construction, to compare with later."""

    def __init__(self):
        self.evaluator = state.evaluator()
        self.note()

    def note(self):
        """Notes the existing C functions and their pointers."""
        gc.collect()
        self.pointers = state.take([*gc.get_objects(), *types()])

    @property
    def count(self):
        return state.size(self.pointers)

    def trouble(self):
        """Returns a sentence about what changed, "" if nothing changed."""
        if sys.getprofile() is not None or state.thread_hooks():
            return "a thread has a profile or trace function"
        if state.evaluator() != self.evaluator:
            return "frames are evaluated by another function"
        if sys.version_info >= (3, 12):
            tools = [number for number in range(6) if sys.monitoring.get_tool(number)]
            if tools:
                return f"there are monitoring tools: {tools}"
        changed = state.changed(self.pointers)
        if changed:
            return f"{len(changed)} C functions are not what they were: {', '.join(changed[:5])}"
        count = getattr(vestige._core, "hooks_in_place", int)()
        if count:
            return f"vestige itself says that {count} hooks are in place"
        return ""
