"""From the source of a function to its program, for arguments of given types.

Functions that it calls become part of it. What is outside the subset (docs: Numba) is refused by
`UnsupportedCodeError`, which names the file, the line, the construct and what to write instead.
"""

from __future__ import annotations

import ast
import builtins
import inspect
from collections import ChainMap
from collections.abc import Callable, Sequence
from typing import Any

from .._function.graph.values import reach
from .._rules.definition import closure
from .._rules.user_source import NoSource, find_definition
from ..autograph._names import BREAK, Liveness, jumps
from ..errors import UnsupportedCodeError
from . import program as ir
from .blocks_of_code import NOTHING, tree, unwrapped
from .expressions_of_code import REMEDIES
from .flow import RESULT, RETURNED, FlowReader
from .pruning import share
from .views import Lazy, View, whole

MAX_DEPTH = 30  # calls of functions inside one another


class CodeReader(FlowReader):
    """Reads one function, and those that it calls, into a program."""

    def call(self, function: Any, args: Sequence[Any], keywords: dict[str, Any]) -> Any:
        if any(function is outer for outer in self.calls):
            raise self.refuse(f"{function.__name__} calls itself: write a loop")
        self.forbid(len(self.calls) >= MAX_DEPTH, f"calls are nested more than {MAX_DEPTH} deep")
        body = body_of(function)
        signature = inspect.signature(function)
        try:
            bound = signature.bind(*args, **keywords)
        except TypeError as error:
            raise self.refuse(f"the call of {function.__name__}: {error}") from None
        outer = self.env, self.names, self.node, self.liveness
        check_returns(body, self.refuse)
        self.held.append(tuple(self.env.values()))
        env = {name: self.wrap(p.default) for name, p in signature.parameters.items()}
        env |= bound.arguments
        for name, parameter in signature.parameters.items():
            if parameter.kind is parameter.VAR_POSITIONAL:
                env[name] = tuple(bound.arguments.get(name, ()))
        self.calls.append(function)
        self.env = {**env, RETURNED: ir.constant(False), RESULT: NOTHING}
        self.names = ChainMap(closure(function), function.__globals__, builtins.__dict__)
        self.liveness = Liveness(body)
        try:
            self.statements(body)
            return self.env[RESULT]
        finally:
            self.env, self.names, self.node, self.liveness = outer
            self.held.pop()
            self.calls.pop()

    def visit_Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):  # a docstring
            self.visit(node.value)

    def visit_Assert(self, node: ast.Assert) -> None:
        message = ast.unparse(node.msg) if node.msg is not None else "assertion failed"
        self.check(self.test(node.test), AssertionError, message)

    def visit_Import(self, node: ast.Import | ast.ImportFrom) -> None:
        raise self.refuse("import it outside the function", node)

    visit_ImportFrom = visit_Import

    def visit_Raise(self, node: ast.Raise) -> None:
        raised, message = node.exc, ""
        if isinstance(raised, ast.Call):
            if raised.args and isinstance(raised.args[0], ast.Constant):
                message = str(raised.args[0].value)
            raised = raised.func
        kind = None if raised is None else unwrapped(self.visit(raised))
        if not (isinstance(kind, type) and issubclass(kind, Exception)):
            raise self.refuse("name the class of the exception: raise ValueError('...')", node)
        self.check(ir.constant(False), kind, message)


def read(
    function: Any, args: Sequence[Any], keywords: dict[str, Any]
) -> tuple[ir.ArrayProgram, Any]:
    """Return the program of a function, and the structure of its outputs.

    Arguments are numbers (`Number`), arrays (`Array`), tuples of them, and what is `Known`. In the
    structure, which tuples make, outputs stand by their positions. A function that returns nothing
    gives the arguments that it writes to.
    """
    program = ir.ArrayProgram(function.__name__)
    reader = CodeReader(program, function)

    def enter(arg: Any) -> Any:
        if isinstance(arg, ir.Array):
            program.inputs.append(arg)
            reader.sizes.update(arg.shape)
            return whole(arg)
        if isinstance(arg, ir.Number) and arg.number is None:
            program.inputs.append(arg)
            reader.sizes.add(arg)
        return arg

    entered = {name: tree(enter, x) for name, x in keywords.items()}
    result = reader.call(function, [tree(enter, arg) for arg in args], entered)
    if result is NOTHING:
        written = program.written
        result = tuple(whole(x) for x in program.inputs if isinstance(x, ir.Array) and x in written)
        if reader.replaced_inputs:
            raise reader.refuse(
                f"{', '.join(dict.fromkeys(reader.replaced_inputs))} is replaced in a loop or a "
                "branch, or reshaped, and then written to, and nothing is returned: "
                "return the resulting arrays"
            )
        reader.forbid(not result, "the function returns nothing and writes to no argument")
        result = result[0] if len(result) == 1 else result

    def leave(value: Any) -> Any:
        if isinstance(value, Lazy) or (isinstance(value, View) and value != whole(value.array)):
            value = reader.materialize(value)
        if isinstance(value, View):
            value = value.array
        elif value == NOTHING:
            return None
        elif not isinstance(value, ir.Number):
            raise reader.refuse("only numbers, arrays and tuples of them can be returned")
        if value not in program.outputs:
            program.outputs.append(value)
        return program.outputs.index(value)

    structure = tree(leave, result)
    shapes = [size for array in program.scratch for size in array.shape]
    ops = reader.definitions
    needed = set(reach(shapes, lambda size: ops[size].args if size in ops else ()))
    program.sizes = [op for size, op in ops.items() if size in needed]
    return share(program), structure


def check_source(function: Any) -> None:
    """Refuse statements and expressions that no program has, before the types are known."""
    reader = CodeReader(ir.ArrayProgram(function.__name__), function)
    body = body_of(function)
    nodes = [x for top in body for x in ast.walk(top)]
    arguments = {x for call in nodes if isinstance(call, ast.Call) for x in call.args}
    inside = {x for argument in arguments for x in ast.walk(argument)}
    for node in nodes:
        if type(node) in REMEDIES and not (isinstance(node, ast.List) and node in inside):
            raise reader.refuse(REMEDIES[type(node)], node)
    check_returns(body, reader.refuse)


def check_returns(body: Sequence[ast.stmt], refuse: Callable[..., Exception]) -> None:
    """Refuse a function that returns a value on some of its paths, and nothing on others."""
    nodes = [x for top in body for x in ast.walk(top) if isinstance(x, ast.Return)]
    values = [ast.unparse(x) not in ("return", "return None") for x in nodes]
    if any(values) and (not all(values) or falls_off(body)):
        place = nodes[values.index(True)]
        raise refuse("only some paths return a value: end with a `return` of a value", place)


def falls_off(nodes: Sequence[ast.stmt]) -> bool:
    """Return whether statements may end without `return` or `raise`."""
    match nodes[-1] if nodes else None:
        case ast.Return() | ast.Raise():
            return False
        case ast.If() as last:
            return falls_off(last.body) or falls_off(last.orelse)
        case ast.While() as last:
            is_endless = isinstance(last.test, ast.Constant) and bool(last.test.value)
            return not is_endless or BREAK in jumps(last.body)
    return True


def body_of(function: Any) -> list[ast.stmt]:
    """Return the statements of a function; a lambda returns its expression."""
    try:
        definition = find_definition(function)
    except NoSource as error:
        raise UnsupportedCodeError(str(error)) from None
    if isinstance(definition, ast.Lambda):
        return [ast.copy_location(ast.Return(definition.body), definition.body)]
    return definition.body
