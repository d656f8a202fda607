"""Ways to change one thing in a function: each operator gives, for a node of its tree, what may stand in its place."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TypeGuard

Function = ast.FunctionDef
Put = ast.AST | list[ast.stmt]
Operator = Callable[[ast.AST], Iterator[Put]]

STRICT: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
}
NEGATED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
OPPOSITE: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
}
REQUIRES = "require"
"""What the reference calls to refuse the arguments that no caller may give."""
OTHER = {"max": "min", "min": "max", "any": "all", "all": "any", "sorted": "list", "reversed": "list"}


@dataclass(frozen=True)
class Change:
    """One thing changed in a function. `called`: the names in the statement that was changed, also of functions."""

    function: str
    operator: str
    before: str
    after: str
    statement: str
    called: tuple[str, ...]
    tree: ast.Module = field(repr=False)

    @property
    def says(self) -> str:
        """`boundary: a < b -> a <= b`; of a lone number, with the statement that has it."""
        where = f" in {self.statement}" if self.before.lstrip("-").isalnum() else ""
        return f"{self.operator}: {self.before} -> {self.after}{where}"


def boundary(node: ast.AST) -> Iterator[ast.AST]:
    """Strict for non-strict, and back; an integer one less, or one more."""
    if isinstance(node, ast.Compare):
        for place, comparison in enumerate(node.ops):
            if type(comparison) in STRICT:
                yield with_comparison(node, place, STRICT[type(comparison)]())
    if isinstance(node, ast.Constant) and type(node.value) is int:
        yield ast.Constant(node.value - 1)
        yield ast.Constant(node.value + 1)


def negated(node: ast.AST) -> Iterator[ast.AST]:
    """The opposite of a comparison, and of a `not`."""
    if isinstance(node, ast.Compare):
        for place, comparison in enumerate(node.ops):
            if type(comparison) in NEGATED:
                yield with_comparison(node, place, NEGATED[type(comparison)]())
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub) and not is_number(node.operand):
        yield node.operand


def with_comparison(node: ast.Compare, place: int, comparison: ast.cmpop) -> ast.Compare:
    """The comparison with another operator at a place."""
    return ast.Compare(node.left, [*node.ops[:place], comparison, *node.ops[place + 1 :]], node.comparators)


def is_number(node: ast.AST) -> bool:
    """Whether the node is a number as it is written."""
    return isinstance(node, ast.Constant) and isinstance(node.value, int | float)


def conjunct(node: ast.AST) -> Iterator[ast.AST]:
    """One condition left out of several, of `and`, of `or`, of a chain of comparisons, of a comprehension."""
    if isinstance(node, ast.BoolOp):
        for place in range(len(node.values)):
            rest = [*node.values[:place], *node.values[place + 1 :]]
            yield rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest)
    if isinstance(node, ast.Compare) and len(node.ops) > 1:
        yield ast.Compare(node.left, node.ops[:-1], node.comparators[:-1])
        yield ast.Compare(node.comparators[0], node.ops[1:], node.comparators[1:])
    if isinstance(node, ast.comprehension):
        for place in range(len(node.ifs)):
            yield ast.comprehension(node.target, node.iter, [*node.ifs[:place], *node.ifs[place + 1 :]], node.is_async)


def branch(node: ast.AST) -> Iterator[ast.AST]:
    """The same branch always: a direction, or a condition, that is not looked at."""
    if isinstance(node, ast.IfExp):
        yield node.body
        yield node.orelse
    if isinstance(node, ast.If):
        yield ast.If(ast.Constant(True), node.body, node.orelse)
        if node.orelse:
            yield ast.If(ast.Constant(False), node.body, node.orelse)


def dropped(node: ast.AST) -> Iterator[Put]:
    """An operation left out."""
    removable = isinstance(node, ast.For | ast.While | ast.Delete | ast.AugAssign | ast.Raise)
    calls = isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
    stores = is_store(node)
    guards = isinstance(node, ast.If) and not node.orelse
    if removable or calls or stores or guards:
        yield [ast.Pass()]
    if isinstance(node, ast.Tuple) and isinstance(node.ctx, ast.Load):
        for place, element in enumerate(node.elts):
            if isinstance(element, ast.Starred):
                yield ast.Tuple([*node.elts[:place], *node.elts[place + 1 :]], node.ctx)
    if isinstance(node, ast.BinOp) and type(node.op) in (ast.BitOr, ast.Sub, ast.Add):
        yield node.left
        if not isinstance(node.op, ast.Sub):
            yield node.right


def is_store(node: ast.AST) -> bool:
    """Whether a statement assigns to parts of what is there already, and to no name."""
    return isinstance(node, ast.Assign) and not any(map(stored, node.targets))


def order(node: ast.AST) -> Iterator[Put]:
    """Two things that follow one another the other way round; a list from its end; two arguments exchanged."""
    if isinstance(node, ast.For) and isinstance(node.iter, ast.Attribute):
        backwards = ast.Call(
            ast.Name("reversed", ast.Load()), [ast.List([ast.Starred(node.iter, ast.Load())], ast.Load())], []
        )
        yield ast.For(node.target, backwards, node.body, node.orelse)
    if isinstance(node, ast.Tuple | ast.List) and isinstance(node.ctx, ast.Load):
        for place in range(len(node.elts) - 1):
            yield type(node)(exchanged(node.elts, place), node.ctx)
    if isinstance(node, ast.Call) and not makes_instance(node):
        for place in range(len(node.args) - 1):
            if all(isinstance(argument, ast.Name) for argument in node.args[place : place + 2]):
                yield ast.Call(node.func, exchanged(node.args, place), node.keywords)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub | ast.Div):
        yield ast.BinOp(node.right, node.op, node.left)


def makes_instance(node: ast.Call) -> bool:
    """Whether a call is one of a class, whose name begins with a capital."""
    return isinstance(node.func, ast.Name) and node.func.id[0].isupper()


def exchanged(items: list[ast.expr], place: int) -> list[ast.expr]:
    """The items with two neighbours exchanged."""
    return [*items[:place], items[place + 1], items[place], *items[place + 2 :]]


def operand(node: ast.AST) -> Iterator[ast.AST]:
    """Another arithmetic: plus for minus, times for divided, the least for the largest."""
    if isinstance(node, ast.BinOp) and type(node.op) in OPPOSITE:
        yield ast.BinOp(node.left, OPPOSITE[type(node.op)](), node.right)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in OTHER:
        keywords = [] if OTHER[node.func.id] == "list" else node.keywords
        yield ast.Call(ast.Name(OTHER[node.func.id], ast.Load()), node.args, keywords)


OPERATORS: dict[str, Operator] = {
    "boundary": boundary,
    "negated": negated,
    "conjunct": conjunct,
    "branch": branch,
    "dropped": dropped,
    "order": order,
    "operand": operand,
}


def changes(module: ast.Module, function: Function) -> Iterator[Change]:
    """Every change of one thing in a function of a module; statements in another order among them."""
    aside = {id(inner) for part in beside(function) for inner in ast.walk(part)}
    for node in ast.walk(function):
        if id(node) in aside:
            continue
        for name, operator in OPERATORS.items():
            made = (change(module, function, node, name, put) for put in operator(node))
            yield from (each for each in made if each.before != each.after)
        for name, block in blocks(node):
            for first in range(len(block) - 1):
                if may_exchange(block[first], block[first + 1]):
                    yield reordered(module, function, node, name, first)


def beside(function: Function) -> list[ast.AST]:
    """The parts that do not say what the function does: docstring, annotations, defaults, and what it requires."""
    stated: list[ast.AST] = [node for node in ast.walk(function) if isinstance(node, ast.stmt) and is_beside(node)]
    stated += [default for node in ast.walk(function) if is_lookup(node) for default in node.args[1:]]
    typed = [node.annotation for node in ast.walk(function) if isinstance(node, ast.AnnAssign)]
    return [function.args, *([function.returns] if function.returns else []), *typed, *stated]


def blocks(node: ast.AST) -> Iterator[tuple[str, list[ast.stmt]]]:
    """The lists of statements that a node has, by name."""
    for name in ("body", "orelse"):
        block = getattr(node, name, None)
        if isinstance(block, list):
            yield name, block


def may_exchange(first: ast.stmt, second: ast.stmt) -> bool:
    """Whether two statements can follow one another the other way round, and each does something beside naming."""
    if any(is_beside(each) or not acts(each) for each in (first, second)):
        return False
    return not (stored(first) & used(second) or stored(second) & used(first))


def is_lookup(node: ast.AST) -> TypeGuard[ast.Call]:
    """Whether a call looks a field up, with what it is where it is not there; a host has all fields."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get"


def acts(node: ast.stmt) -> bool:
    """Whether a statement changes something that is there already, or ends the function."""
    return is_store(node) or isinstance(node, ast.For | ast.While | ast.If | ast.Expr | ast.AugAssign | ast.Delete)


def is_beside(node: ast.stmt) -> bool:
    """Whether a statement is a docstring, or says what the function requires of its caller."""
    value = node.value if isinstance(node, ast.Expr) else None
    requires = isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == REQUIRES
    return requires or isinstance(value, ast.Constant)


def stored(node: ast.AST) -> set[str]:
    """The names that a statement gives a value."""
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}


def used(node: ast.AST) -> set[str]:
    """The names in a statement."""
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}


def change(module: ast.Module, function: Function, node: ast.AST, operator: str, put: Put) -> Change:
    """The change that puts something in the place of a node, in a tree of its own."""
    tree, target = copied(module, node)
    put = copy.deepcopy(put)
    for each in put if isinstance(put, list) else [put]:
        ast.fix_missing_locations(each)
    before, after = shown(node), shown(*put) if isinstance(put, list) else shown(put)
    Putting(target, put).visit(tree)
    ast.fix_missing_locations(tree)
    around = statement_of(function, node)
    names = tuple(sorted(used(around)))
    return Change(function.name, operator, before, after, shown(around), names, tree)


def reordered(module: ast.Module, function: Function, node: ast.AST, name: str, first: int) -> Change:
    """The change that exchanges two statements of a node."""
    tree, target = copied(module, node)
    block = getattr(target, name)
    one, other = block[first], block[first + 1]
    block[first : first + 2] = [other, one]
    return Change(function.name, "order", shown(one, other), shown(other, one), "", (), tree)


def copied(module: ast.Module, node: ast.AST) -> tuple[ast.Module, ast.AST]:
    """A copy of the module's tree, and in it the twin of a node."""
    tree = copy.deepcopy(module)
    pairs = zip(ast.walk(module), ast.walk(tree), strict=True)
    return tree, next(twin for each, twin in pairs if each is node)


def shown(*nodes: ast.AST) -> str:
    """The nodes in a line, of a statement with a block its first."""
    return "; ".join(ast.unparse(node).strip().partition("\n")[0] for node in nodes)


def statement_of(function: Function, node: ast.AST) -> ast.stmt:
    """The innermost statement of the function that has the node."""
    return [each for each in ast.walk(function) if isinstance(each, ast.stmt) and node in ast.walk(each)][-1]


class Putting(ast.NodeTransformer):
    """Puts something else in the place of one node."""

    def __init__(self, target: ast.AST, put: Put) -> None:
        self.target = target
        self.put = put

    def visit(self, node: ast.AST) -> ast.AST | list[ast.stmt]:
        """What stands in the node's place."""
        return self.put if node is self.target else self.generic_visit(node)
