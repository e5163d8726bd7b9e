"""Texts for which a regular expression may take long, generated from the expression itself.

Each part that may repeat is repeated very often: once after the shortest text that leads to it, and once with that
text, so that a search starts again at each. The end is a text that it cannot match.
"""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from re import _constants as op  # type: ignore[attr-defined]
from re import _parser  # type: ignore[attr-defined]
from typing import Any

import echod
from echod.lazy import LazyPattern

_REPEATS = (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT)
_MANY = 16
_PICKS = 2
_FROM_CLASS = {
    op.CATEGORY_DIGIT: "19", op.CATEGORY_SPACE: " \n", op.CATEGORY_WORD: "a_",
    op.CATEGORY_NOT_DIGIT: "a", op.CATEGORY_NOT_SPACE: "a-", op.CATEGORY_NOT_WORD: " -",
}  # fmt: skip
_ORDINARY = 'a1 -_.*:`"[(\n'
_AT_START = frozenset({"match", "fullmatch"})
_METHODS = _AT_START | {"search", "sub", "subn", "finditer", "findall", "split"}


@dataclass(frozen=True)
class ProductPattern:
    """A compiled pattern of the product, its place, and the methods that use it (empty: unknown)."""

    name: str
    pattern: re.Pattern[Any]
    methods: frozenset[str]

    def run(self, text: str) -> None:
        """Search the text as the product does."""
        output: Any = text.encode("utf-8", "surrogateescape") if isinstance(self.pattern.pattern, bytes) else text
        if not self.methods or self.methods - _AT_START:
            for _ in self.pattern.finditer(output):
                pass
        if not self.methods or "match" in self.methods:
            self.pattern.match(output)
        if not self.methods or "fullmatch" in self.methods:
            self.pattern.fullmatch(output)


def product_patterns() -> Iterator[ProductPattern]:
    """Return every compiled pattern in a module of the product, alone or in a table."""
    used = _methods_by_pattern()
    seen = set()
    for found in pkgutil.walk_packages(echod.__path__, "echod."):
        if found.name.endswith("__main__"):
            continue
        module = importlib.import_module(found.name)
        for name, value in vars(module).items():
            for place, pattern in _find_patterns(value, name, 0):
                if (pattern.pattern, pattern.flags) not in seen:
                    seen.add((pattern.pattern, pattern.flags))
                    yield ProductPattern(f"{found.name}.{place}", pattern, frozenset(used.get((found.name, place), ())))


def slow_texts(pattern: re.Pattern[Any], length: int) -> Iterator[str]:
    """Return texts of about that many characters."""
    source = pattern.pattern
    tree = _parser.parse(source, pattern.flags & ~re.UNICODE if isinstance(source, bytes) else pattern.flags)
    pumps: set[tuple[str, str]] = set()
    for pick in range(_PICKS):
        _collect(tree, "", pick, pumps)
        pumps.add(("", _shortest(tree, pick)))
    units = {(before, unit) for before, unit in pumps if unit} | {("", before + unit) for before, unit in pumps}
    for before, unit in sorted(units):
        if unit:
            yield before + unit * (length // len(unit)) + "\0"


def _methods_by_pattern() -> dict[tuple[str, str], set[str]]:
    """Return the methods that use each pattern in its own module. An imported pattern is left out."""
    used: dict[tuple[str, str], set[str]] = {}
    imported: set[str] = set()
    for file in Path(echod.__path__[0]).rglob("*.py"):
        module = ".".join(("echod", *file.relative_to(echod.__path__[0]).with_suffix("").parts))
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Attribute) and node.attr in _METHODS:
                if isinstance(node.value, ast.Name):
                    used.setdefault((module, node.value.id), set()).add(node.attr)
            elif isinstance(node, ast.ImportFrom):
                imported.update(name.name for name in node.names)
    return {place: methods for place, methods in used.items() if place[1] not in imported}


def _find_patterns(value: Any, name: str, depth: int) -> Iterator[tuple[str, re.Pattern[Any]]]:
    if isinstance(value, LazyPattern):
        value = re.compile(value.pattern, value.initial_flags)
    if isinstance(value, re.Pattern):
        yield name, value
    elif depth == _PICKS + 1:
        return
    elif isinstance(value, tuple | list | set | frozenset):
        for number, part in enumerate(value):
            yield from _find_patterns(part, f"{name}[{number}]", depth + 1)
    elif isinstance(value, dict) and not name.startswith("__"):
        for key, part in value.items():
            yield from _find_patterns(part, f"{name}[{key!r}]", depth + 1)
    elif is_dataclass(value) and not isinstance(value, type):
        for part in fields(value):
            yield from _find_patterns(getattr(value, part.name), f"{name}.{part.name}", depth + 1)


def _collect(nodes: Iterable[Any], before: str, pick: int, pumps: set[tuple[str, str]]) -> None:
    """Return the parts that may repeat, each with the shortest text that leads to it."""
    here = before
    for code, value in nodes:
        for inner in _subpatterns(code, value):
            _collect(inner, here, pick, pumps)
        if code in _REPEATS and (value[1] is op.MAXREPEAT or value[1] >= _MANY):
            pumps.add((here, _shortest(value[2], pick)))
        here += _shortest([(code, value)], pick)


def _subpatterns(code: Any, value: Any) -> list[Any]:
    if code in _REPEATS:
        return [value[2]]
    if code is op.SUBPATTERN:
        return [value[3]]
    if code is op.ATOMIC_GROUP:
        return [value]
    if code in (op.ASSERT, op.ASSERT_NOT):
        return [value[1]]
    return list(value[1]) if code is op.BRANCH else []


def _shortest(nodes: Iterable[Any], pick: int) -> str:
    return "".join(_shortest_of(code, value, pick) for code, value in nodes)


def _shortest_of(code: Any, value: Any, pick: int) -> str:
    if code is op.LITERAL:
        return chr(value)
    if code is op.NOT_LITERAL:
        return "b" if chr(value) == "a" else "a"
    if code is op.ANY:
        return "a"
    if code is op.IN:
        members = _members(value)
        return members[pick % len(members)]
    if code in _REPEATS:
        return _shortest(value[2], pick) * int(value[0])
    if code is op.BRANCH:
        return _shortest(value[1][pick % len(value[1])], pick)
    return "".join(
        _shortest(inner, pick) for inner in _subpatterns(code, value) if code not in (op.ASSERT, op.ASSERT_NOT)
    )


def _members(items: Iterable[Any]) -> str:
    negated, found = False, ""
    for code, value in items:
        if code is op.NEGATE:
            negated = True
        elif code is op.LITERAL:
            found += chr(value)
        elif code is op.RANGE:
            found += chr(value[0]) + chr(value[1])
        elif code is op.CATEGORY:
            found += _FROM_CLASS.get(value, "a")
    if not negated:
        return found or "a"
    return "".join(character for character in _ORDINARY if character not in found) or "\u2603"
