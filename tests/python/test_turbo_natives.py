"""C functions under turbo, which is called in their place: every calling convention, unchanged functions, and restored
ones.
"""

import copy
import gc
import json
import math
import os
import pickle
import subprocess
import sys
import textwrap
import types
import weakref

import pytest

import compiled
import vestige
from tree import calls, load, names, record, tree
from vestige import profile

pytestmark = pytest.mark.skipif("turbo" not in vestige._core.engines, reason="there is no such engine here")
SOURCE = (compiled.HERE / "turbo_natives.c").read_text()


@pytest.fixture(scope="module")
def natives():
    made = sys.modules["turbo_natives"] = compiled.module("turbo_natives", SOURCE)
    yield made
    del sys.modules["turbo_natives"]


def full_names(trace):
    return [event["name"] for event in calls(trace) if event["name"].startswith("<built-in")]


def counts(prof):
    return json.loads(prof._session.trace().metadata()["vestige.turbo"])


def both(function):
    """Returns the C functions that the safe engine and turbo record."""
    return [full_names(record(function, engine=engine)) for engine in (vestige._core.engines[0], "turbo")]


# ---- calls ----------------------------------------------------------------


def test_every_convention_gets_what_it_was_called_with_and_has_its_name(natives):
    thing = natives.Thing()
    got = []

    def outer():
        for target in (thing, natives.Thing):
            here = () if target is thing else (thing,)
            got.append(target.noargs(*here))
            got.append(target.one(*here, 1))
            got.append(target.varargs(*here, 1, 2))
            got.append(target.keywords(*here, 1, b=2))
            got.append(target.fast(*here, 1, 2, 3))
            got.append(target.fast_keywords(*here, 1, 2, c=3))
            got.append(target.method(*here, 1, b=2))
            got.append(target.of_class())
            got.append(target.static())

    outer()
    bare, got = got, []
    safe, turbo = both(outer)
    assert got == bare * 2
    assert len(bare) == 18
    mine = [name for name in turbo if "append" not in name]
    assert mine == [name for name in safe if "append" not in name]
    assert mine[:2] == [f"<built-in method {name} of turbo_natives.Thing object>" for name in ("noargs", "one")]
    assert "<built-in method static of type object>" in mine
    assert len(mine) == 18


def test_names_are_the_safe_engine_s(natives):
    class Mine(list):
        pass

    class More(natives.Thing):
        pass

    def outer():
        len([1])
        math.sqrt(4.0)
        Mine().append(1)
        append = Mine().append
        append(2)
        list.append([], 1)
        More().noargs()
        natives.Thing().noargs()
        More.of_class()
        More.static()
        str.maketrans({})
        bytes.fromhex("00")
        natives.plain()
        "a".join(["b"])
        sys.intern("a")

    safe, turbo = both(outer)
    assert turbo == safe


def test_a_c_function_that_is_called_by_one_is_inside_it(natives):
    def outer():
        natives.calls(natives.plain)

    assert tree(outer, engine="turbo") == "outer\n  <calls>\n    <plain>"


def test_what_fails_is_marked_and_what_it_raised_arrives(natives):
    raised = []

    def outer():
        try:
            natives.fails()
        except KeyError as error:
            raised.append(error)
        try:
            natives.calls(natives.fails)
        except KeyError as error:
            raised.append(error)

    lines = [line for line in tree(outer, engine="turbo").splitlines() if "append" not in line]
    assert lines == ["outer", "  <fails> (raised)", "  <calls> (raised)", "    <fails> (raised)"]
    assert [str(error) for error in raised] == ["'as it shall'"] * 2


# ---- what programs do with functions ---------------------------------------


def test_functions_are_equal_to_what_they_were_and_found_in_dictionaries(natives):
    keys = [len, math.sqrt, natives.plain, [].append, natives.Thing().method, dict.fromkeys]
    before = {function: number for number, function in enumerate(keys)}
    hashes = [hash(function) for function in keys]
    found = []

    def outer():
        found.append([before[function] for function in keys])
        found.append([hash(function) for function in keys] == hashes)
        found.append([function.__hash__() for function in keys] == hashes)
        found.append(natives.plain == natives.alias)  # a function under two names equals itself
        found.append(natives.plain.__eq__(len))
        found.append(natives.plain != len)

    record(outer, engine="turbo")
    assert found == [list(range(len(keys))), True, True, natives.plain == natives.alias, False, True]
    assert [hash(function) for function in keys] == hashes


def test_what_the_interpreter_compares_functions_by_goes_on_as_it_was():
    class Thing:
        def __init__(self):
            self.a = 1

    class Slotted:
        __slots__ = ("a",)

    def program():
        slotted = Slotted()
        slotted.a = 2
        results = [json.dumps({"a": ["\u00e9", 1.5]}), json.dumps("\u00e9", ensure_ascii=False)]
        results.append(pickle.loads(pickle.dumps({"x": (1, 2)})))
        results.append(copy.copy(slotted).a)
        results.append(copy.deepcopy(Thing()).a)
        with pytest.raises(TypeError):
            pickle.dumps(slotted, protocol=1)
        return results

    inside = []
    trace = record(lambda: inside.append(program()), engine="turbo")
    assert inside == [program()]
    assert not [name for name in full_names(trace) if "encode_basestring" in name]


INHERITED = """
import builtins, dis, sys
from tree import names, record
from vestige import profile

def get(thing):
    for _ in range(100):
        thing[0]

def instructions(thing):
    fresh = type(get)(get.__code__.replace(co_name="fresh"), globals())
    for _ in range(10):
        fresh(thing)
    return [each.opname for each in dis.get_instructions(fresh, adaptive=True)]

def recorded(thing):
    return {name: count for name, count in names(record(get, thing, engine="turbo")).items() if "getitem" in name}

bases = [getattr(builtins, name) for name in ("dict", "frozendict", "list") if hasattr(builtins, name)]
before = [type("Sub", (base,), {}) for base in bases]
with profile(engine="turbo"):
    during = [type("Sub", (base,), {}) for base in bases]
for old, new in zip(before, during):
    old, new = old({0: 1}), new({0: 1})
    assert instructions(old) == instructions(new), (instructions(old), instructions(new))
    assert recorded(old) == recorded(new), (recorded(old), recorded(new))
"""


@pytest.mark.parametrize("kept", ["", "kept = {}.__getitem__, [].__getitem__\nfirst, second = kept\n"])
def test_a_class_made_while_recording_gets_the_slots_of_one_made_before(kept, tmp_path):
    """From 3.14 on, a class inherits a slot that points to the C function of the inherited method; a class without
    this slot stays slow for ever. If the program keeps a bound method, the search finds this method first.
    """
    paths = {**os.environ, "PYTHONPATH": str(compiled.HERE)}
    done = subprocess.run(
        [sys.executable, "-c", kept + INHERITED], capture_output=True, text=True, cwd=tmp_path, env=paths
    )
    assert (done.stderr, done.returncode) == ("", 0)


def test_a_pointer_that_somebody_kept_goes_on_working_after_the_stop(natives):
    kept = []

    def outer():
        kept.append(natives.pointer(natives.plain))

    before = natives.pointer(natives.plain)
    record(outer, engine="turbo")
    assert natives.pointer(natives.plain) == before != kept[0]
    assert natives.call_pointer(kept[0]) is True
    record(outer, engine="turbo")
    assert kept[0] == kept[1]  # the function gets the same pointer in later recordings


def test_the_collector_knows_no_object_of_ours(natives):
    natives.held = natives.make("held")
    kinds = (types.CodeType, types.BuiltinFunctionType)

    def ours():
        return [thing for thing in gc.get_objects() if type(thing) is weakref.ref and isinstance(thing(), kinds)]

    def many(things):
        return [len(things) for _ in range(3)] + [isinstance(thing, list) for thing in things]

    before = len(ours())
    found = []

    def outer():
        found.append(many([1, 2]))
        found.append(len(ours()))

    record(outer, engine="turbo")
    assert found == [[2, 2, 2, False, False], before]
    del natives.held


# ---- tables ---------------------------------------------------------------


def test_a_table_that_may_not_be_written_is_left_alone_and_counted(natives):
    with profile(engine="turbo") as prof:
        natives.closed()
        natives.plain()
    found = names(load(prof))
    assert "<closed>" not in found and found["<plain>"] == 1
    assert counts(prof)["read_only"] >= 1
    assert counts(prof)["covered"] > 1000
    assert counts(prof)["overflow"] == 0


def test_definitions_on_the_heap_are_covered_and_may_be_freed_at_any_time(natives):
    natives.kept, natives.dropped = natives.make("kept"), natives.make("dropped")
    with profile(engine="turbo") as prof:
        natives.kept()
        natives.dropped()
        del natives.dropped
        gc.collect()
        natives.made_meanwhile = natives.make("made_meanwhile")
        natives.made_meanwhile()
    assert counts(prof)["freed"] == 1
    found = full_names(load(prof))
    assert "<built-in method kept of PyCapsule object>" in found
    assert "<built-in method dropped of PyCapsule object>" in found
    assert vestige._core.hooks_in_place() == 0
    with profile(engine="turbo") as prof:
        natives.kept()
        natives.made_meanwhile()
    again = full_names(load(prof))
    assert "<built-in method kept of PyCapsule object>" in again
    assert "<built-in method made_meanwhile of PyCapsule object>" in again
    del natives.kept, natives.made_meanwhile


def test_a_function_s_address_may_be_kept_longer_than_its_definition_on_the_heap(natives):
    natives.gone = natives.make("gone")
    with profile(engine="turbo"):
        call, thunk = natives.call_pointer, natives.pointer(natives.gone)
        del natives.gone
        assert call(thunk) is natives.plain()
    with profile(engine="turbo") as prof:
        assert call(thunk) is natives.plain()
    assert not [name for name in full_names(load(prof)) if "gone" in name]
    assert call(thunk) is natives.plain()


def test_starting_and_stopping_brings_no_garbage_collection_nearer(natives):
    """Each definition on the heap is watched by an object that the collector counts."""
    for number in range(3000):
        setattr(natives, f"many_{number}", natives.make("many"))
    prof, collections = profile(engine="turbo"), []
    gc.collect()
    gc.callbacks.append(lambda phase, info: collections.append(phase))
    try:
        prof.start()
        made = [[] for _ in range(200)]
        prof.stop()
        young = gc.get_count()[0]
    finally:
        gc.callbacks.pop()
    for number in range(3000):
        delattr(natives, f"many_{number}")
    assert counts(prof)["covered"] > 4000
    assert collections == []
    assert len(made) <= young  # nor do the functions delay the next collection


def test_definitions_that_come_and_go_at_one_address_have_their_right_names(natives):
    for number in range(30):
        natives.turn = natives.make(f"turn_{number}")
        with profile(engine="turbo") as prof:
            natives.turn()
            if number % 2:
                del natives.turn
        assert f"<built-in method turn_{number} of PyCapsule object>" in full_names(load(prof))


def test_no_object_of_the_program_s_is_kept_alive(natives):
    natives.held = natives.make("held")
    references = [sys.getrefcount(natives.held)]
    with profile(engine="turbo"):
        natives.held()
        references.append(sys.getrefcount(natives.held))
    references.append(sys.getrefcount(natives.held))
    assert len(set(references)) == 1
    del natives.held


def test_modules_that_are_imported_while_recording_are_covered():
    def outer():
        made = compiled.module("turbo_imported", SOURCE.replace("turbo_natives", "turbo_imported"))
        made.plain()
        made.Thing().noargs()
        made.Thing().method()

    found = full_names(record(outer, engine="turbo"))
    assert "<built-in function plain>" in found
    assert "<built-in method noargs of turbo_imported.Thing object>" in found
    assert "<built-in method method of turbo_imported.Thing object>" in found


def test_functions_beyond_the_last_thunk_are_counted_and_work(tmp_path):
    compiled.need_compiler()
    program = """
        import json, sys
        sys.path.insert(0, {here!r})
        import compiled
        from vestige import profile
        with open({source!r}) as file:
            natives = sys.modules["turbo_natives"] = compiled.module("turbo_natives", file.read())
        for number in range(17000):
            setattr(natives, f"f{{number}}", natives.make(f"f{{number}}"))
        for _ in range(2):
            with profile(engine="turbo") as prof:
                assert all([getattr(natives, f"f{{number}}")() for number in range(17000)])
            counts = json.loads(prof._session.trace().metadata()["vestige.turbo"])
            print(counts["covered"] >= 16384, counts["overflow"] > 600)
    """
    text = textwrap.dedent(program).format(here=str(compiled.HERE), source=str(compiled.HERE / "turbo_natives.c"))
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, cwd=tmp_path)
    assert (done.stdout, done.stderr) == ("True True\n" * 2, "")
