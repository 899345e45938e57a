"""Facts about the interpreter that both the oracle and the twin use."""

import sys

FILE = "program.py"


class Interpreter:
    """Which frames a version of Python runs, where versions differ. Taken from the interpreter's source, not from any
    profiler.
    """

    # list, set and dict comprehensions are functions (PEP 709)
    comprehensions_are_frames = sys.version_info < (3, 12)
    # close() of a generator that never ran runs it, to raise GeneratorExit in it
    close_enters_a_generator_that_never_ran = sys.version_info < (3, 12)
    # close() of a generator whose yield is in no try or with ends the generator without resuming it, whoever listens
    close_enters_where_nothing_can_catch = not (
        (3, 13) <= sys.version_info < (3, 13, 12) or (3, 14) <= sys.version_info < (3, 14, 1)
    )
    # functions without a call when their only argument is a generator expression: the compiler inlines a loop
    inlined_over_generator_expressions = (
        {"all", "any", "tuple", "list", "set"}
        if sys.version_info >= (3, 15)
        else {"all", "any", "tuple"}
        if sys.version_info >= (3, 14)
        else set()
    )
    # `with` calls __enter__ like any function (but not __exit__ after an exception)
    with_calls_enter = sys.version_info >= (3, 14)
