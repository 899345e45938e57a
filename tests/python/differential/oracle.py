"""Finds the expected recording of a program without any hook of the interpreter.

A program is run as its twin (twin.py): the same source, rewritten so that every function, generator, coroutine, class
body and comprehension logs when its frame is entered and left, and every call in the source that calls a C function
logs this call. The log is the expected tree. The twin uses neither our engines nor sys.setprofile nor sys.monitoring,
so the comparison finds errors in the interpreter's hooks as well as errors in our use of them. The price: the twin must
know which frames the interpreter enters (a throw() into `yield from` reaches the inner generator before the outer
generator runs). facts.py lists the few places where versions of Python differ.

The twin is a separate program, so its results are compared with the program's results.
"""

import functools
import inspect
import operator
import re
import threading
import types
import weakref

from .facts import Interpreter
from .twin import twin

# ---- the log -----------------------------------------------------------


class Node:
    """A call: its name, what it called, whether it was left by an exception; `why` distinguishes calls of C functions."""

    __slots__ = ("name", "children", "raised", "why")

    def __init__(self, name, why=""):
        self.name = name
        self.children = []
        self.raised = False
        self.why = why


class Log:
    """The calls of each thread, by the thread's name."""

    def __init__(self):
        self.threads = {}
        self._local = threading.local()

    def _stack(self):
        try:
            return self._local.stack
        except AttributeError:
            root = self.threads.setdefault(threading.current_thread().name, Node("thread"))
            self._local.stack = [root]
            return self._local.stack

    def enter(self, name, why=""):
        node = Node(name, why)
        stack = self._stack()
        stack[-1].children.append(node)
        stack.append(node)
        return node

    def leave(self, name, raised=False):
        node = self._stack().pop()
        assert node.name == name, f"the twin left {name} but was in {node.name}"
        node.raised = raised
        return node

    def wrong_call(self, message):
        """Notes the reason if the C call that a TypeError leaves never began."""
        node = self._stack()[-1]
        if not node.children:
            node.why = next((why for why, said in WRONG_CALLS.items() if said.search(message)), node.why)


# ---- what a twin calls -------------------------------------------------


class Span:
    """A frame. A generator's is suspended and resumed; one that was suspended when it ended was never entered again."""

    __slots__ = ("log", "name", "inside")

    def __init__(self, log, name):
        self.log = log
        self.name = name
        self.inside = False

    def __enter__(self):
        self.resume()
        return self

    def __exit__(self, kind, value, traceback):
        if self.inside:
            self.log.leave(self.name, raised=kind is not None)
            self.inside = False

    def suspend(self):
        if self.inside:
            self.log.leave(self.name)
            self.inside = False

    def resume(self):
        self.log.enter(self.name)
        self.inside = True

    def close(self, guarded):
        """GeneratorExit arrived at a yield."""
        if guarded or Interpreter.close_enters_where_nothing_can_catch:
            self.resume()


BINDING = (types.MethodType, classmethod, staticmethod)  # their arguments are called where these objects are called


class Runtime:
    """`_t` in a twin."""

    def __init__(self):
        self.log = Log()

    def span(self, name):
        return Span(self.log, name)

    def native(self, name):
        return Span(self.log, f"<built-in function {name}>")

    def call(self, function, /, *args, **named):
        """A call expression of the source."""
        try:
            name = call_name(function)
            if name is not None or (issubclass(type(function), type) and function not in BINDING):
                args = [self._from_c(argument) for argument in args]
                named = {key: self._from_c(argument) for key, argument in named.items()}
            if name is None:
                return function(*args, **named)
            return self._call_native(name, function, args, named)
        finally:
            # a traceback must not keep these objects longer than the program's own traceback would
            del function, args, named

    def _call_native(self, name, function, args, named):
        self.log.enter(name, "")
        raised = True
        try:
            self._enter_one_that_never_ran(function, args)
            result = self._translated(function, args)(*args, **named)
            raised = False
            return result
        except TypeError as error:
            self.log.wrong_call(str(error))
            raise
        finally:
            self.log.leave(name, raised)
            del function, args, named

    def _from_c(self, function):
        """A C function that the program passes to C code or to a type, which then calls it."""
        name = native_name(function)
        if name is None:
            return function

        def called_from_c(*args, **named):
            raised = True
            self.log.enter(name, "from C")
            try:
                result = function(*args, **named)
                raised = False
                return result
            finally:
                self.log.leave(name, raised)

        return called_from_c

    def _enter_one_that_never_ran(self, function, args):
        generator = getattr(function, "__self__", None)
        if type(generator) is types.GeneratorType:
            fresh = inspect.getgeneratorstate(generator) == inspect.GEN_CREATED
        elif type(generator) is types.CoroutineType:
            fresh = inspect.getcoroutinestate(generator) == inspect.CORO_CREATED
        else:
            return
        throws = function.__name__ == "throw"
        closes = function.__name__ == "close" and Interpreter.close_enters_a_generator_that_never_ran
        if fresh and (throws or closes):
            frame = generator.gi_frame if isinstance(generator, types.GeneratorType) else generator.cr_frame
            code = frame.f_code
            if code is Runtime._resumed_by_hand.__code__:
                name = frame.f_locals["name"]
            else:
                name = frame.f_globals["_names"][code.co_name, code.co_firstlineno]
            self.log.enter(name)
            self.log.leave(name, raised=True)

    def _translated(self, function, args):
        """Makes exec, eval and compile of source run the source's twin."""
        if not any(function is one for one in (exec, eval, compile)):  # some objects refuse to be compared
            return function
        if function is not compile and len(args) > 1:
            args[1].setdefault("_t", self)
        if not args or not isinstance(args[0], str):
            return function
        file = args[1] if function is compile else "<string>"
        mode = args[2] if function is compile else function.__name__
        code, names = twin(args[0], file, mode)
        if function is compile:
            return lambda *_: code
        args[1].setdefault("_names", {}).update(names)
        return lambda _, *places: function(code, *places)

    def expression(self, name, body):
        with Span(self.log, name):
            return body()

    def comprehension(self, name, body, iterable):
        """The first iterator is created outside the comprehension's frame."""
        iterator = iter(iterable)
        if not Interpreter.comprehensions_are_frames:
            return body(iterator)
        with Span(self.log, name):
            return body(iterator)

    def generator_expression(self, name, body, iterable):
        return self._resumed_by_hand(name, body(iter(iterable)))

    def _resumed_by_hand(self, name, inner):
        with Span(self.log, name) as span:
            for value in inner:
                span.suspend()
                try:
                    yield value
                except GeneratorExit:
                    span.close(guarded=False)
                    raise
                except BaseException:
                    span.resume()
                    raise
                span.resume()

    def manager(self, manager):
        is_c = isinstance(getattr(type(manager), "__exit__", None), types.MethodDescriptorType)
        return Manager(self, manager) if is_c else manager

    def delegate(self, span, iterable):
        return delegate(span, iterable if type(iterable) is types.GeneratorType else iter(iterable))

    def awaiting(self, span, awaitable):
        return Awaiting(span, awaitable)

    def async_iterator(self, span, iterable):
        return AsyncIterator(span, iterable)

    def async_manager(self, span, manager):
        return AsyncManager(span, manager)


def delegate(span, iterator):
    """`yield from` as the interpreter does it: what is thrown in reaches the innermost before the outer frame runs."""
    try:
        value = next(iterator) if hasattr(iterator, "__next__") else iterator.send(None)
    except StopIteration as stop:
        return stop.value
    while True:
        span.suspend()
        try:
            sent = yield value
        except GeneratorExit:
            try:
                if hasattr(iterator, "close"):
                    iterator.close()
            finally:
                span.resume()
            raise
        except BaseException as error:
            if not hasattr(iterator, "throw"):
                span.resume()
                raise
            try:
                value = iterator.throw(error)
            except StopIteration as stop:
                span.resume()
                return stop.value
            except BaseException:
                span.resume()
                raise
            continue
        span.resume()
        try:
            by_next = sent is None and hasattr(iterator, "__next__")
            value = next(iterator) if by_next else iterator.send(sent)
        except StopIteration as stop:
            return stop.value


class Manager:
    """One in C. A block that ends calls its __exit__ as any function, from 3.14 on one that begins its __enter__ too;
    the rest the interpreter calls by itself."""

    def __init__(self, runtime, manager):
        self.runtime = runtime
        self.manager = manager

    def __enter__(self):
        return self.call("__enter__", "" if Interpreter.with_calls_enter else "by with")

    def __exit__(self, *error):
        return self.call("__exit__", "by with" if error[0] else "", *error)

    def call(self, name, why, *args):
        function = getattr(self.manager, name)
        self.runtime.log.enter(native_name(function), why)
        try:
            return function(*args)
        finally:
            self.runtime.log.leave(native_name(function))


class Awaiting:
    def __init__(self, span, awaitable):
        self.span = span
        self.awaitable = awaitable

    def __await__(self):
        awaitable = self.awaitable
        if isinstance(awaitable, types.CoroutineType):
            return delegate(self.span, awaitable)
        if isinstance(awaitable, types.GeneratorType) and awaitable.gi_code.co_flags & inspect.CO_ITERABLE_COROUTINE:
            return delegate(self.span, awaitable)
        return delegate(self.span, type(awaitable).__await__(awaitable))


class AsyncIterator:
    def __init__(self, span, iterable):
        self.span = span
        self.iterator = type(iterable).__aiter__(iterable)

    def __aiter__(self):
        return self

    def __anext__(self):
        return Awaiting(self.span, type(self.iterator).__anext__(self.iterator))


class AsyncManager:
    def __init__(self, span, manager):
        self.span = span
        self.manager = manager

    def __aenter__(self):
        return Awaiting(self.span, type(self.manager).__aenter__(self.manager))

    def __aexit__(self, *error):
        return Awaiting(self.span, type(self.manager).__aexit__(self.manager, *error))


# ---- names of C functions ----------------------------------------------

# Errors raised before the function's own code is reached: because of wrong arguments, or because of the object.
WRONG_CALLS = {
    "arguments": re.compile(r"takes (no|exactly one|no keyword) arguments?\b"),
    "self": re.compile(r"needs an argument|doesn't apply to"),
}


def native_name(function):
    """Returns a C function's name as documented; None for anything else: a class, a slot, a Python function."""
    if type(function) is types.MethodType:  # isinstance would ask the object
        function = function.__func__
    if type(function) is types.MethodDescriptorType:
        return f"<built-in method {function.__name__} of {class_name(function.__objclass__)} object>"
    if not issubclass(type(function), types.BuiltinFunctionType):
        return None
    owner = function.__self__
    if isinstance(owner, types.ModuleType):
        return f"<built-in function {function.__name__}>"
    if isinstance(owner, type) or ("." in function.__qualname__ and owner is None):  # class and static methods
        return f"<built-in method {function.__name__} of type object>"
    if owner is None:
        return f"<built-in function {function.__name__}>"
    for base in type(owner).__mro__:
        if isinstance(base.__dict__.get(function.__name__), types.MethodDescriptorType):
            return f"<built-in method {function.__name__} of {class_name(base)} object>"
    raise AssertionError(f"nobody defines {function!r}")


# Their objects are small, or the interpreter makes them without a call.
SMALL = (
    *(type, str, tuple, super, int, float, complex, bool, object, range, slice, enumerate, reversed, zip, map, filter),
    *(property, staticmethod, classmethod, types.MethodType, types.CellType, weakref.ref),
)


CALLED_IN_C = (
    *(functools.partial, operator.itemgetter, operator.attrgetter, operator.methodcaller),
    type(functools.cmp_to_key(len)),
)


def call_name(callable):
    """The name of a call of a function, class or object; None: it has no span of its own."""
    if issubclass(type(callable), type):
        return class_call_name(callable)
    if type(callable) is functools._lru_cache_wrapper:
        return f"<built-in function {callable.__qualname__.rpartition('<locals>.')[2]}>"
    if type(callable) in CALLED_IN_C:
        return f"<built-in method __call__ of {class_name(type(callable))} object>"
    return native_name(callable)


def class_call_name(cls):
    made_by = [inspect.getattr_static(cls, name) for name in ("__new__", "__init__")]
    if (
        any(isinstance(one, (types.FunctionType, staticmethod)) for one in made_by)
        or made_by == [inspect.getattr_static(object, "__new__"), object.__init__]
        or isinstance(inspect.getattr_static(type(cls), "__call__"), types.FunctionType)
        or issubclass(cls, (BaseException, type))
        or cls in SMALL
    ):
        return None
    return f"<built-in type {cls.__qualname__.rpartition('<locals>.')[2]}>"


def class_name(cls):
    return cls.__qualname__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__qualname__}"


def load(source):
    """A namespace in which the twin was run, and its runtime: nothing of that is logged."""
    runtime = Runtime()
    code, names = twin(source)
    namespace = {"__name__": "program", "_t": runtime, "_names": names}
    exec(code, namespace)
    runtime.log = Log()
    return namespace, runtime
