"""No result depends on the order of a set, which differs between two runs of one program."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import echod

PACKAGE = Path(echod.__file__).parent

REVIEWED = {
    "app/import_access.py": "keys that one value gets",
    "cli/commands/picture.py": "ends in a sort by names that occur once",
    "files.py": "entries of a cache are dropped",
    "inspection/secrets.py": "counts are dropped",
    "jobs/ingest.py": "ends in a sort by names that occur once",
    "memory/conservation.py": "collected by their first lines, into sets",
    "memory/entry_matching.py": "only candidates without a rival count",
    "memory/evidence/fingerprint.py": "a table, read by its keys",
    "memory/similarity/compare.py": "ends in a set",
    "memory/similarity/contradiction.py": "ends in a minimum",
    "search/finder.py": "each document gets a bonus of its own",
    "search/ranking.py": "each document has a sum of its own",
    "sessions/journal.py": "directories are synced",
    "sessions/transcripts.py": "entries of a cache are dropped",
    "state/entries.py": "rows are inserted",
    "state/entry_ids.py": "rows are renamed all at once",
    "status/collect.py": "a table, read by its keys",
    "store/commit/apply.py": "files are removed",
    "store/journal/records.py": "entries of a cache are dropped",
}
"""Modules that iterate over a set, and why its order has no effect. Each was read."""

_SET_TYPES = {"set", "frozenset", "AbstractSet"}
_SET_METHODS = {"union", "intersection", "difference", "symmetric_difference"}
_ORDERED_BY_ITERATION = {"list", "tuple", "next", "enumerate", "zip", "map", "filter", "nlargest", "nsmallest"}
_WITHOUT_ORDER = {"sorted", "set", "frozenset", "any", "all", "sum", "min", "max", "len", "Counter"}


class _Function:
    """A function, and which of its names are sets."""

    def __init__(self, node: ast.FunctionDef) -> None:
        self._node = node
        arguments = [*node.args.args, *node.args.kwonlyargs]
        self._sets = {argument.arg for argument in arguments if _is_set_type(argument.annotation)}
        for inner in ast.walk(node):
            if isinstance(inner, ast.AnnAssign) and isinstance(inner.target, ast.Name):
                self._sets |= {inner.target.id} if _is_set_type(inner.annotation) else set()
            elif isinstance(inner, ast.Assign) and self._is_set(inner.value):
                self._sets |= {target.id for target in inner.targets if isinstance(target, ast.Name)}

    def iterations(self) -> Iterator[int]:
        """Yield the lines that iterate over a set in its order."""
        unordered = {
            id(argument)
            for call in ast.walk(self._node)
            if isinstance(call, ast.Call) and _name(call) in _WITHOUT_ORDER and not call.keywords
            for argument in call.args
        }
        for node in ast.walk(self._node):
            if id(node) not in unordered and any(map(self._is_set, _iterated(node))):
                yield node.lineno if isinstance(node, ast.stmt | ast.expr) else 0

    def _is_set(self, node: ast.expr) -> bool:
        match node:
            case ast.Set() | ast.SetComp():
                return True
            case ast.Call():
                is_method = isinstance(node.func, ast.Attribute) and node.func.attr in _SET_METHODS
                return is_method or _name(node) in {"set", "frozenset"}
            case ast.BinOp(left, ast.BitOr() | ast.BitAnd() | ast.Sub() | ast.BitXor(), right):
                sides = (left, right)
                return any(
                    self._is_set(side) or (isinstance(side, ast.Call) and _name(side) == "keys") for side in sides
                )
            case ast.Name(name):
                return name in self._sets
        return False


def _is_set_type(annotation: ast.expr | None) -> bool:
    return annotation is not None and ast.unparse(annotation).partition("[")[0] in _SET_TYPES


def _name(call: ast.Call) -> str:
    return call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")


def _iterated(node: ast.AST) -> list[ast.expr]:
    """Return what a node iterates over, if the order matters to it."""
    match node:
        case ast.For():
            return [node.iter]
        case ast.ListComp() | ast.GeneratorExp() | ast.DictComp():
            return [generator.iter for generator in node.generators]
        case ast.Call() if _name(node) in _ORDERED_BY_ITERATION | {"join", "fromkeys", "extend"}:
            return node.args[-1:] if _name(node) in {"map", "filter"} else node.args[:1]
        case ast.Call() if _name(node) in {"sorted", "min", "max"} and node.keywords:
            return node.args[:1]
    return []


def iterations(source: str) -> list[int]:
    """Return the lines of functions that iterate over a set in its order."""
    functions = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef)]
    return sorted({line for function in functions for line in _Function(function).iterations()})


@pytest.mark.parametrize(
    ("source", "is_found"),
    [
        ("for x in {a, b}: use(x)", True),
        ("names = set(words)\n    return sorted(names, key=len)", True),
        ("return [use(x) for x in one.keys() - other]", True),
        ("return next(x for x in frozenset(words))", True),
        ("return sorted(set(words))", False),
        ("return any(use(x) for x in set(words))", False),
        ("for x in dict.fromkeys(words): use(x)", False),
    ],
)
def test_an_iteration_is_found(source: str, is_found: bool) -> None:
    assert bool(iterations(f"def function():\n    {source}\n")) is is_found


def test_no_module_iterates_over_a_set_unless_its_order_has_no_effect() -> None:
    found = {
        str(path.relative_to(PACKAGE)): lines
        for path in PACKAGE.rglob("*.py")
        if (lines := iterations(path.read_text()))
    }

    assert {name: lines for name, lines in found.items() if name not in REVIEWED} == {}
    assert [name for name in REVIEWED if name not in found] == []
