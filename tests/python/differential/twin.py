"""Rewrites a program's source into its twin, which calls `_t` (oracle.Runtime) wherever a frame is entered or left."""

import ast

from .facts import FILE, Interpreter


def twin(source, file=FILE, mode="exec"):
    """Returns the twin's code, and the names of its functions by (plain name, line)."""
    rewriter = Rewriter(file)
    tree = ast.fix_missing_locations(rewriter.whole(ast.parse(source, mode=mode)))
    return compile(tree, f"twin of {file}", mode), rewriter.names


def parse(text, **parts):
    """Parses statements, and replaces names by `parts`."""
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


def is_inlined(call):
    """Returns whether the compiler replaces the call of a builtin by a loop."""
    return (
        isinstance(call.func, ast.Name)
        and call.func.id in Interpreter.inlined_over_generator_expressions
        and len(call.args) == 1
        and not call.keywords
        and isinstance(call.args[0], ast.GeneratorExp)
    )


class Rewriter(ast.NodeTransformer):
    def __init__(self, file):
        self.file = file
        self.place = []  # parts of the qualified name of the definition that we are in
        self.guarded = [False]  # per function: whether we are inside a try or with statement
        self.names = {}  # (plain name, line) -> label

    def label(self, name, line):
        return f"{self.file}({line}): {''.join([*self.place, name])}"

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
        # aclose() throws GeneratorExit into the generator, whether or not the generator can catch it.
        guarded = isinstance(node, ast.AsyncFunctionDef)
        body = self.inside(node.body, f"{node.name}.<locals>.", guarded)
        node.body = parse("with _t.span(NAME) as _s:\n    BODY", NAME=ast.Constant(label), BODY=body)
        return node

    visit_AsyncFunctionDef = visit_FunctionDef

    def inside(self, body, place, guarded=False):
        self.place.append(place)
        self.guarded.append(guarded)
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
        for field, value in ast.iter_fields(node):
            # The else branch runs after the try block, so only a finally guards the else branch.
            self.guarded[-1] = before or field != "orelse" or bool(node.finalbody)
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
        inlined = is_inlined(node)
        node = self.generic_visit(node)
        if inlined or (isinstance(node.func, ast.Name) and node.func.id == "super"):
            return node  # no call is logged; super() looks at the calling frame
        node.args.insert(0, node.func)
        node.func = ast.Attribute(ast.Name("_t", ast.Load()), "call", ast.Load())
        return node
