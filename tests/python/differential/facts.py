"""What both the oracle and the twin know of the interpreter and of programs."""

import sys

FILE = "program.py"


class Interpreter:
    """Which frames a version of Python runs, where that differs: facts of its source, not of any profiler."""

    # list, set and dict comprehensions are functions (PEP 709)
    comprehensions_are_frames = sys.version_info < (3, 12)
    # close() of a generator that never ran runs it, to raise GeneratorExit in it
    close_enters_a_generator_that_never_ran = sys.version_info < (3, 12)
    # close() of a generator whose yield stands in no try or with just ends it
    close_enters_where_nothing_can_catch = sys.version_info < (3, 13)
    # a code object knows its qualified name
    names_are_qualified = sys.version_info >= (3, 11)
