"""What a program should be recorded as, found out without any hook of the interpreter.

A program is run as its twin: the same source, rewritten so that every function, generator, coroutine, class body and
comprehension logs when its frame is entered and left, and every call in the source asks whether it is of a C function and
logs that. The log is the expected tree. Neither our engines nor sys.setprofile nor sys.monitoring have a part in it, so what
is wrong in both a hook and in our use of it is still found; the price is that the twin must know which frames the
interpreter enters (a throw() into `yield from` reaches the inner generator before the outer one runs), and that the
few places where versions of Python differ in that are spelt out: they are the functions of `Interpreter`.

The twin is a program of its own: what it computes is compared with what the program computes.
"""

import ast
import inspect
import re
import sys
import threading
import types

FILE = "program.py"


# ---- the log -----------------------------------------------------------


class Node:
    """A call: its name, what it called, whether it was left by an exception; `why` tells apart calls in C."""

    __slots__ = ("name", "children", "raised", "why")

    def __init__(self, name, why=""):
        self.name = name
        self.children = []
        self.raised = False
        self.why = why


class Log:
    """The calls of each thread, by its name."""

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
        """The call in C that is being left by a TypeError: whether it ever began."""
        node = self._stack()[-1]
        if not node.children:
            node.why = next((why for why, said in WRONG_CALLS.items() if said.search(message)), node.why)


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


BINDING = (types.MethodType, classmethod, staticmethod)  # what they are given is called where they are


class Runtime:
    """`_t` in a twin."""

    def __init__(self):
        self.log = Log()

    def span(self, name):
        return Span(self.log, name)

    def native(self, name):
        return Span(self.log, f"<built-in function {name}>")

    def call(self, function, /, *args, **named):
        """A call that stands in the source."""
        try:
            name = native_name(function)
            if name is not None or isinstance(function, type) and function not in BINDING:
                args = [self._from_c(argument) for argument in args]
                named = {key: self._from_c(argument) for key, argument in named.items()}
            if name is None:
                return function(*args, **named)
            return self._call_native(name, function, args, named)
        finally:
            del function, args, named  # a traceback must not keep them longer than the program's does

    def _call_native(self, name, function, args, named):
        why = "method" if isinstance(function, types.MethodType) else ""
        self.log.enter(name, why)
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
        """A C function that is given to C or to a type, and called from there."""
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
        if isinstance(generator, types.GeneratorType):
            fresh = inspect.getgeneratorstate(generator) == inspect.GEN_CREATED
        elif isinstance(generator, types.CoroutineType):
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
        """exec, eval and compile of source run its twin."""
        if function in (exec, eval) and len(args) > 1:
            args[1].setdefault("_t", self)
        if function not in (exec, eval, compile) or not args or not isinstance(args[0], str):
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
        """The first iterator is made outside of its frame."""
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
        return delegate(span, iterable if isinstance(iterable, types.GeneratorType) else iter(iterable))

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
    """One in C. A block that ends calls its __exit__ as any function; the rest the interpreter calls by itself."""

    def __init__(self, runtime, manager):
        self.runtime = runtime
        self.manager = manager

    def __enter__(self):
        return self.call("__enter__", "by with")

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

# What is raised before the function's own code is reached: by how it was called, by what it was called on.
WRONG_CALLS = {
    "arguments": re.compile(r"takes (no|exactly one|no keyword) arguments?\b"),
    "self": re.compile(r"needs an argument|doesn't apply to"),
}


def native_name(function):
    """As the README has them; None of what is no C function: a type, a slot, a Python function."""
    if isinstance(function, types.MethodType):
        function = function.__func__
    if isinstance(function, types.MethodDescriptorType):
        return f"<built-in method {function.__name__} of {class_name(function.__objclass__)} object>"
    if not isinstance(function, types.BuiltinFunctionType):
        return None
    owner = function.__self__
    if isinstance(owner, types.ModuleType):
        return f"<built-in function {function.__name__}>"
    if isinstance(owner, type) or "." in function.__qualname__ and owner is None:  # class and static methods
        return f"<built-in method {function.__name__} of type object>"
    if owner is None:
        return f"<built-in function {function.__name__}>"
    for base in type(owner).__mro__:
        if isinstance(base.__dict__.get(function.__name__), types.MethodDescriptorType):
            return f"<built-in method {function.__name__} of {class_name(base)} object>"
    raise AssertionError(f"nobody defines {function!r}")


def class_name(cls):
    return cls.__qualname__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__qualname__}"


# ---- rewriting ---------------------------------------------------------


def twin(source, file=FILE, mode="exec"):
    """The twin's code, and the names of its functions by what a frame knows of them."""
    rewriter = Rewriter(file)
    tree = ast.fix_missing_locations(rewriter.whole(ast.parse(source, mode=mode)))
    return compile(tree, f"twin of {file}", mode), rewriter.names


def load(source):
    """A namespace in which the twin was run, and its runtime: nothing of that is logged."""
    runtime = Runtime()
    code, names = twin(source)
    namespace = {"__name__": "program", "_t": runtime, "_names": names}
    exec(code, namespace)
    runtime.log = Log()
    return namespace, runtime


def parse(text, **parts):
    """Statements with parts in place of names."""
    tree = ast.parse(text)
    return Fill(parts).visit(tree).body


class Fill(ast.NodeTransformer):
    def __init__(self, parts):
        self.parts = parts

    def visit_Name(self, node):
        return self.parts.get(node.id, node)

    def visit_Expr(self, node):
        if isinstance(node.value, ast.Name) and isinstance(self.parts.get(node.value.id), list):
            return self.parts[node.value.id]
        return self.generic_visit(node)


def expression(text, **parts):
    return parse(text, **parts)[0].value


YIELD = """
_value = VALUE
_s.suspend()
try:
    _value = yield _value
except GeneratorExit:
    _s.close(GUARDED)
    raise
except BaseException:
    _s.resume()
    raise
_s.resume()
"""


class Rewriter(ast.NodeTransformer):
    def __init__(self, file):
        self.file = file
        self.place = []  # of the qualified name
        self.guarded = [False]  # by function: whether this is inside of a try or with
        self.names = {}  # (plain name, line) -> label

    def label(self, name, line):
        full = "".join([*self.place, name]) if Interpreter.names_are_qualified else name
        return f"{self.file}({line}): {full}"

    def whole(self, tree):
        label = ast.Constant(self.label("<module>", 1))
        tree = self.generic_visit(tree)
        if isinstance(tree, ast.Expression):
            tree.body = expression("_t.expression(NAME, lambda: BODY)", NAME=label, BODY=tree.body)
        elif tree.body:
            tree.body = parse("with _t.span(NAME):\n    BODY", NAME=label, BODY=tree.body)
        return tree

    # ---- frames ----

    def visit_FunctionDef(self, node):
        line = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
        label = self.label(node.name, line)
        self.names[node.name, line] = label
        node.decorator_list = [self.visit(decorator) for decorator in node.decorator_list]
        node.args = self.visit(node.args)
        body = self.inside(node.body, f"{node.name}.<locals>.")
        node.body = parse("with _t.span(NAME) as _s:\n    BODY", NAME=ast.Constant(label), BODY=body)
        return node

    visit_AsyncFunctionDef = visit_FunctionDef

    def inside(self, body, place):
        self.place.append(place)
        self.guarded.append(False)
        body = self.body(body)
        self.guarded.pop()
        self.place.pop()
        return body

    def body(self, statements):
        found = []
        for statement in statements:
            result = self.visit(statement)
            found.extend(result if isinstance(result, list) else [result])
        return found

    def visit_ClassDef(self, node):
        label = self.label(node.name, node.lineno)
        assert not node.decorator_list and all(isinstance(base, ast.Name) for base in node.bases)
        body = self.inside(node.body, f"{node.name}.")
        node.body = parse("with _t.span(NAME):\n    BODY", NAME=ast.Constant(label), BODY=body)
        return parse("with _t.native('__build_class__'):\n    BODY", BODY=[node])

    def visit_Lambda(self, node):
        label = self.label("<lambda>", node.lineno)
        self.place.append("<lambda>.<locals>.")
        body = self.visit(node.body)
        self.place.pop()
        node.body = expression("_t.expression(NAME, lambda: BODY)", NAME=ast.Constant(label), BODY=body)
        return node

    def comprehension(self, node, kind, how):
        label = self.label(kind, node.lineno)
        first = self.visit(node.generators[0].iter)
        node.generators[0].iter = ast.Name("_iterator", ast.Load())
        if kind == "<genexpr>" or Interpreter.comprehensions_are_frames:
            self.place.append(f"{kind}.")
            self.generic_visit(node)
            self.place.pop()
        else:
            self.generic_visit(node)
        text = f"_t.{how}(NAME, lambda _iterator: BODY, FIRST)"
        return expression(text, NAME=ast.Constant(label), BODY=node, FIRST=first)

    def visit_ListComp(self, node):
        return self.comprehension(node, "<listcomp>", "comprehension")

    def visit_SetComp(self, node):
        return self.comprehension(node, "<setcomp>", "comprehension")

    def visit_DictComp(self, node):
        return self.comprehension(node, "<dictcomp>", "comprehension")

    def visit_GeneratorExp(self, node):
        return self.comprehension(node, "<genexpr>", "generator_expression")

    # ---- leaving and coming back ----

    def guard(self, node):
        before = self.guarded[-1]
        self.guarded[-1] = True
        for field, value in ast.iter_fields(node):
            if field in ("body", "handlers", "orelse", "finalbody"):
                setattr(node, field, self.body(value))
            elif field == "items":
                setattr(node, field, [self.visit(item) for item in value])
        self.guarded[-1] = before
        return node

    visit_Try = guard

    def visit_With(self, node):
        node = self.guard(node)
        for item in node.items:
            item.context_expr = expression("_t.manager(MANAGER)", MANAGER=item.context_expr)
        return node

    def visit_AsyncWith(self, node):
        node = self.guard(node)
        for item in node.items:
            item.context_expr = expression("_t.async_manager(_s, MANAGER)", MANAGER=item.context_expr)
        return node

    def visit_AsyncFor(self, node):
        node = self.generic_visit(node)
        node.iter = expression("_t.async_iterator(_s, ITERABLE)", ITERABLE=node.iter)
        return node

    def visit_Await(self, node):
        node.value = expression("_t.awaiting(_s, VALUE)", VALUE=self.visit(node.value))
        return node

    def visit_YieldFrom(self, node):
        node.value = expression("_t.delegate(_s, VALUE)", VALUE=self.visit(node.value))
        return node

    def visit_Expr(self, node):
        if isinstance(node.value, ast.Yield):
            return self.suspension(node.value)
        return self.generic_visit(node)

    def visit_Assign(self, node):
        if isinstance(node.value, ast.Yield):
            after = ast.Assign(node.targets, ast.Name("_value", ast.Load()))
            return [*self.suspension(node.value), after]
        return self.generic_visit(node)

    def visit_Yield(self, node):
        raise AssertionError("a yield must be a statement, or all that a statement assigns")

    def suspension(self, node):
        value = self.visit(node.value) if node.value else ast.Constant(None)
        return parse(YIELD, VALUE=value, GUARDED=ast.Constant(self.guarded[-1]))

    # ---- calls ----

    def visit_Call(self, node):
        node = self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id == "super":
            return node  # which looks at the frame that calls it
        node.args.insert(0, node.func)
        node.func = ast.Attribute(ast.Name("_t", ast.Load()), "call", ast.Load())
        return node
