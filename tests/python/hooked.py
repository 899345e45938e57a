"""What is hooked in this process, seen from outside of vestige by hook_state.c."""

import gc
import sys

import compiled
import vestige

state = compiled.module("hook_state", (compiled.HERE / "hook_state.c").read_text())


def types():
    """Every type there is; static ones are in no list of the collector's."""
    found, pending = set(), [object]
    while pending:
        kind = pending.pop()
        if kind not in found:
            found.add(kind)
            pending += type.__subclasses__(kind)
    return list(found)


class Hooks:
    """What the interpreter had hooked when this was made, to be compared with later."""

    def __init__(self):
        self.evaluator = state.evaluator()
        self.note()

    def note(self):
        """What C functions are there now, and the pointers that they have."""
        gc.collect()
        self.pointers = state.take([*gc.get_objects(), *types()])

    @property
    def count(self):
        return state.size(self.pointers)

    def trouble(self):
        """What is not as it was, as a sentence; "" if all is."""
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
