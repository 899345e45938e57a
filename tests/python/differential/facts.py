"""What both the oracle and the twin know of the interpreter and of programs."""

import sys

FILE = "program.py"


class Interpreter:
    """Which frames a version of Python runs, where that differs: facts of its source, not of any profiler."""

    # list, set and dict comprehensions are functions (PEP 709)
    comprehensions_are_frames = sys.version_info < (3, 12)
    # close() of a generator that never ran runs it, to raise GeneratorExit in it
    close_enters_a_generator_that_never_ran = sys.version_info < (3, 12)
    # close() of a generator whose yield stands in no try or with just ends it, whoever listens
    close_enters_where_nothing_can_catch = not (
        (3, 13) <= sys.version_info < (3, 13, 12) or (3, 14) <= sys.version_info < (3, 14, 1)
    )
    # functions that are not called when all that they are given is a generator expression: the compiler puts a loop
    inlined_over_generator_expressions = (
        {"all", "any", "tuple", "list", "set"}
        if sys.version_info >= (3, 15)
        else {"all", "any", "tuple"}
        if sys.version_info >= (3, 14)
        else set()
    )
    # `with` calls __enter__ as any function (but not __exit__ after an exception)
    with_calls_enter = sys.version_info >= (3, 14)
