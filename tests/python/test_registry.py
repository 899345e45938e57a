"""The core knows tracers only through its registry: it calls and records another tracer in place of Python's in the
same way.
"""

import ctypes
import gc

import pytest

import compiled
import vestige._core
from tree import calls, load, names, record
from vestige import profile

ASKED = ("make", "stop", "restart", "register_gc_callback", "get_events", "destroy")


class Calls(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int) for name in ASKED]

    def asked(self):
        return {name: getattr(self, name) for name in ASKED}


def leaf():
    pass


@pytest.fixture
def foreign():
    """A tracer written in C, registered in place of ours."""
    library = ctypes.PyDLL(str(compiled.library((compiled.HERE / "foreign_tracer.c").read_text())))
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    library.foreign_begin.argtypes, library.foreign_begin.restype = [ctypes.c_void_p], ctypes.c_size_t
    library.foreign_get_calls.restype = ctypes.POINTER(Calls)
    size = library.foreign_begin(pointer(vestige._core.api, b"vestige._core.api"))
    assert size >= 9 * ctypes.sizeof(ctypes.c_void_p)
    library.calls = library.foreign_get_calls().contents
    yield library
    gc.collect()
    assert library.foreign_end() == 1


def test_another_tracer_is_made_asked_and_destroyed_by_an_ordinary_profile(foreign):
    prof = profile()
    prof.start()
    leaf()
    prof.stop()
    prof.start()
    leaf()
    prof.stop()
    assert foreign.calls.asked() == {
        "make": 1, "stop": 2, "restart": 1, "register_gc_callback": 1, "get_events": 0, "destroy": 0,
    }  # fmt: skip
    trace = load(prof)
    assert foreign.calls.get_events == 0  # a recording is read through its file
    assert names(trace) == {"foreign outer": 2, "foreign inner": 4}
    del prof
    gc.collect()
    assert foreign.calls.destroy == 1


def test_the_events_of_another_tracer_nest_and_carry_their_marks(foreign):
    with profile() as prof:
        leaf()
    spans = sorted(calls(load(prof)), key=lambda event: event["args"]["Ev Idx"])
    assert [event["name"] for event in spans] == ["foreign outer", "foreign inner", "foreign inner"]
    assert spans[1]["args"]["Python parent id"] == spans[0]["args"]["Python id"]
    assert spans[1]["args"]["raised"]
    assert spans[2]["args"]["open at end"]


def test_pausing_and_going_on_restarts_another_tracer(foreign):
    with profile() as prof:
        prof.toggle_collection_dynamic(False)
        prof.toggle_collection_dynamic(True)
    assert foreign.calls.restart == 1
    assert foreign.calls.stop == 2


def test_collections_are_not_asked_for_when_they_are_left_out(foreign):
    with profile(gc=False):
        pass
    assert foreign.calls.register_gc_callback == 0


def test_a_tracer_that_cannot_start_is_a_clear_error_and_the_next_one_works(foreign):
    foreign.foreign_fail_next(1)
    with pytest.raises(Exception, match="tracer"):
        profile().start()
    foreign.foreign_fail_next(0)
    with profile() as prof:
        pass
    assert names(load(prof)) == {"foreign outer": 1, "foreign inner": 2}


def test_a_tracer_that_cannot_restart_is_a_clear_error_and_keeps_the_first_window(foreign):
    prof = profile()
    prof.start()
    prof.stop()
    foreign.foreign_fail_next(1)
    with pytest.raises(Exception, match="tracer"):
        prof.start()
    foreign.foreign_fail_next(0)
    assert names(load(prof))["foreign outer"] == 1


def test_no_hook_of_ours_is_placed_for_another_tracer(foreign):
    import sys

    with profile():
        if hasattr(sys, "monitoring"):
            assert sys.monitoring.get_tool(4) is None
        assert not [callback for callback in gc.callbacks if "vestige" in repr(callback)]


def test_with_nothing_registered_a_recording_is_a_valid_trace_without_spans(foreign):
    foreign.foreign_register_nothing()
    with profile() as prof:
        leaf()
    trace = load(prof)
    assert calls(trace) == []
    prof.start()
    leaf()
    prof.stop()
    assert calls(load(prof)) == []
    assert foreign.calls.make == 0


def test_annotations_are_kept_without_any_tracer(foreign):
    """Annotations go to the recording, not to the tracer; the no-op tracer makes no spans of them."""
    foreign.foreign_register_nothing()
    with profile() as prof:
        with vestige.record_function("block"):
            leaf()
    load(prof)


def test_afterwards_ours_is_registered_again():
    assert names(record(leaf)) == {"leaf": 1}
