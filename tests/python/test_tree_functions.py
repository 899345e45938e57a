"""Python functions of every form, each with the calls that a recording must show."""

import functools
import sys

import pytest

from tree import by_version, calls, expected, names, record, short, tree


def leaf():
    pass


def test_calls_are_nested_as_they_were_made():
    def inner():
        leaf()

    def outer():
        inner()
        leaf()

    assert tree(outer) == expected(
        """
        outer
          inner
            leaf
          leaf
        """
    )


def test_a_lambda_is_a_call():
    def outer():
        (lambda: leaf())()

    assert tree(outer) == expected(
        """
        outer
          <lambda>
            leaf
        """
    )


def test_comprehensions_are_frames_until_3_12_inlined_them():
    def outer():
        [leaf() for _ in (1, 2)]
        {leaf() for _ in (1,)}
        {1: leaf() for _ in (1,)}

    assert tree(outer) == by_version(
        v311="""
        outer
          <listcomp>
            leaf
            leaf
          <setcomp>
            leaf
          <dictcomp>
            leaf
        """,
        v312="""
        outer
          leaf
          leaf
          leaf
          leaf
        """,
    )


def test_a_generator_expression_is_resumed_once_an_item():
    def outer():
        for _ in (leaf() for _ in (1, 2)):
            pass

    assert tree(outer) == expected(
        """
        outer
          <genexpr>
            leaf
          <genexpr>
            leaf
          <genexpr>
        """
    )


@pytest.mark.safe_engine
def test_a_class_body_is_a_call_inside_build_class():
    def outer():
        class Thing:
            value = leaf()

    assert tree(outer) == expected(
        """
        outer
          <__build_class__>
            Thing
              leaf
        """
    )


def test_a_metaclass_shows_its_methods():
    class Meta(type):
        def __call__(cls):
            return super().__call__()

    class Thing(metaclass=Meta):
        def __init__(self):
            leaf()

    def outer():
        Thing()

    assert tree(outer) == expected(
        """
        outer
          __call__
            __init__
              leaf
        """
    )


def test_executed_code_has_the_file_name_it_was_compiled_with():
    code = compile("def made():\n    leaf()\nmade()", "made up.py", "exec")

    def outer():
        exec(code, {"leaf": leaf})

    trace = record(outer)
    full = [event["name"] for event in calls(trace)]
    assert "made up.py(1): <module>" in full
    assert "made up.py(1): made" in full
    assert tree(outer) == expected(
        """
        outer
          <exec>
            <module>
              made
                leaf
        """
    )


def test_evaluated_text_is_a_module_called_string():
    def outer():
        eval("leaf()", globals())  # 3.13 copies the locals of a function with a C function, which turbo shows

    trace = record(outer)
    assert "<string>(1): <module>" in [event["name"] for event in calls(trace)]
    assert names(trace) == {"outer": 1, "<globals>": 1, "<eval>": 1, "<module>": 1, "leaf": 1}


def test_a_decorated_function_shows_its_wrapper():
    def twice(function):
        @functools.wraps(function)
        def wrapper():
            function()
            function()

        return wrapper

    @twice
    def decorated():
        leaf()

    def outer():
        decorated()

    assert tree(outer) == expected(
        """
        outer
          wrapper
            decorated
              leaf
            decorated
              leaf
        """
    )


def test_methods_properties_and_operators_are_calls():
    class Thing:
        def __init__(self):
            self.method()

        def method(self):
            pass

        @classmethod
        def of_class(cls):
            pass

        @staticmethod
        def static():
            pass

        @property
        def value(self):
            return self.method()

        @value.setter
        def value(self, value):
            leaf()

        def __add__(self, other):
            return 1

        def __getattr__(self, name):
            return name

        def __call__(self):
            pass

    def outer():
        thing = Thing()
        thing.of_class()
        thing.static()
        thing.value = thing.value
        thing + thing
        thing.absent
        thing()

    assert tree(outer) == expected(
        """
        outer
          __init__
            method
          of_class
          static
          value
            method
          value
            leaf
          __add__
          __getattr__
          __call__
        """
    )


def test_a_method_is_named_by_its_qualified_name():
    class Thing:
        def method(self):
            pass

    def outer():
        Thing().method()

    full = [event["name"] for event in calls(record(outer))]
    assert any(name.endswith("test_a_method_is_named_by_its_qualified_name.<locals>.Thing.method") for name in full)


def test_super_reaches_the_method_of_the_base():
    class Base:
        def method(self):
            leaf()

    class Derived(Base):
        def method(self):
            super().method()

    def outer():
        Derived().method()

    assert tree(outer) == expected(
        """
        outer
          method
            method
              leaf
        """
    )


def test_arguments_by_name_and_by_star_change_nothing():
    def target(a, b=2, *c, d=4, **e):
        pass

    def outer():
        target(1)
        target(1, b=2)
        target(*[1, 2, 3], **{"d": 4})  # noqa: PIE804

    assert tree(outer) == expected(
        """
        outer
          target
          target
          target
        """
    )


def test_a_call_that_fails_to_bind_its_arguments_never_began():
    def target(a):
        pass

    def outer():
        for arguments in ((), (1, 2)):
            try:
                target(*arguments)
            except TypeError:
                leaf()

    assert tree(outer) == expected(
        """
        outer
          leaf
          leaf
        """
    )


def test_recursion_is_a_chain():
    def down(n):
        if n:
            down(n - 1)

    assert tree(down, 3) == expected(
        """
        down
          down
            down
              down
        """
    )


def test_recursion_to_the_limit_is_all_there_and_raises_as_without_us():
    depth = 0

    def down():
        nonlocal depth
        depth += 1
        down()

    def outer():
        with pytest.raises(RecursionError):
            down()

    trace = record(outer)
    spans = [event for event in calls(trace) if short(event["name"]) == "down"]
    # Whether the call beyond the limit begins for the hooks depends on the version.
    assert len(spans) - depth in (0, 1)
    assert all(span["args"].get("raised") for span in spans)


def test_depth_far_beyond_the_default_limit_is_kept():
    def down(n):
        if n:
            down(n - 1)

    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(20_000)
    try:
        trace = record(down, 9_999)
    finally:
        sys.setrecursionlimit(limit)
    assert names(trace)["down"] == 10_000


def test_functions_created_and_destroyed_in_a_loop_keep_their_names():
    def outer():
        for number in range(2000):
            space = {}
            exec(f"def f{number}(): pass", space)
            space[f"f{number}"]()

    counts = names(record(outer))
    assert {name: counts[name] for name in counts if name.startswith("f")} == {f"f{n}": 1 for n in range(2000)}


def test_equal_functions_of_different_code_objects_share_a_name():
    def outer():
        for _ in range(100):
            eval("(lambda: 1)()", {})

    counts = names(record(outer))
    assert counts == {"outer": 1, "<eval>": 100, "<module>": 100, "<lambda>": 100}


def test_a_finalizer_is_a_call_where_it_ran():
    class Thing:
        def __del__(self):
            leaf()

    def outer():
        thing = Thing()
        del thing

    assert tree(outer) == expected(
        """
        outer
          __del__
            leaf
        """
    )


def test_a_file_name_that_is_not_utf_8_is_kept_and_hurts_nobody():
    name = b"caf\xe9.py".decode("utf-8", "surrogateescape")
    code = compile("def f(): pass\nf()", name, "exec")

    def outer():
        exec(code, {})

    full = [event["name"] for event in calls(record(outer))]
    assert len([n for n in full if n.startswith("caf") and n.endswith(".py(1): f")]) == 1


@pytest.mark.parametrize("name", ['quote".py', "back\\slash.py", "new\nline.py", "nul\0.py", "\ud800.py", "☃.py", ""])
def test_strange_file_names_make_valid_json(name):
    try:
        code = compile("def f(): pass\nf()", name, "exec")
    except (ValueError, SyntaxError, UnicodeError):
        code = compile("def f(): pass\nf()", "plain.py", "exec").replace(co_filename=name)

    def outer():
        exec(code, {})

    assert names(record(outer))["f"] == 1


def test_a_known_program_has_every_call():
    def fibonacci(n):
        return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)

    def outer():
        for _ in range(10_000):
            leaf()
        for _ in range(5_000):
            abs(-1)
        fibonacci(15)

    assert names(record(outer)) == {"outer": 1, "leaf": 10_000, "<abs>": 5_000, "fibonacci": 1973}
