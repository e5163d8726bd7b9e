"""The shape of the package: few modules of readable size, one name for one thing, plain English."""

from __future__ import annotations

import ast
import io
import re
import statistics
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import click
import pytest

import echod
from echod.cli.root import app

PACKAGE = Path(echod.__file__).parent
ROOT = Path(__file__).parents[1]
MODULES = sorted(path for path in PACKAGE.rglob("*.py"))

MAX_MODULES = 330
MAX_LINES = 77_800
MAX_FILE_LINES = 500
MIN_MEDIAN_LINES = 120
MAX_LOCAL_IMPORTS = 25

BANNED = re.compile(
    r"\b(?:whoever|somebody|nobody|anew|mend|mends|mended|tells|told|says|stands|stood|likewise|of which|a person"
    r"|a person's)\b|(?-i:(?:^|[.:] )What )(?![^.]*\?)",
    re.IGNORECASE | re.MULTILINE,
)
"""Habits of another language's syntax, each with a plain English cure in docs/glossary.md."""


def lines_of(path: Path) -> int:
    return len(path.read_text().splitlines())


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_there_are_few_modules() -> None:
    assert len(MODULES) <= MAX_MODULES
    assert sum(map(lines_of, MODULES)) <= MAX_LINES


def test_modules_have_a_readable_size() -> None:
    sizes = {path: lines_of(path) for path in MODULES}
    chapters = [size for path, size in sizes.items() if path.name not in {"__init__.py", "__main__.py"}]

    assert {name_of(path): size for path, size in sizes.items() if size > MAX_FILE_LINES} == {}
    assert statistics.median(chapters) >= MIN_MEDIAN_LINES


def test_no_public_class_name_exists_twice() -> None:
    homes = defaultdict(list)
    for path in MODULES:
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(name_of(path))

    assert {name: paths for name, paths in homes.items() if len(paths) > 1} == {}


def test_imports_stand_at_the_top() -> None:
    local = Counter(
        path
        for path, _ in {
            (name_of(path), inner.lineno)
            for path in MODULES
            for function in ast.walk(ast.parse(path.read_text()))
            if isinstance(function, ast.FunctionDef)
            for inner in ast.walk(function)
            if isinstance(inner, ast.Import | ast.ImportFrom)
        }
    )

    assert local.total() <= MAX_LOCAL_IMPORTS, local.most_common()


def texts_of(path: Path) -> Iterator[tuple[int, str]]:
    """Yield docstrings, comments and the sentences of messages, each with its line."""
    source = path.read_text()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield node.lineno, node.value
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


DATA = {
    "echod/memory/similarity/contradiction.py",
    "echod/memory/similarity/words.py",
    "echod/memory/findings/sections.py",
    "echod/memory/findings/text.py",
    "echod/memory/prompt_injection.py",
    "echod/memory/knowledge/text.py",
}
"""Modules whose strings are word lists that agents' texts are compared with."""


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_texts_are_plain_english(path: Path) -> None:
    found = [
        f"{name_of(path)}:{line}: {match[0]!r} in {text[:80]!r}"
        for line, text in texts_of(path)
        if not (name_of(path) in DATA and "." not in text) and (match := BANNED.search(text)) is not None
    ]

    assert found == []


@pytest.mark.parametrize(
    "page", sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), ROOT / "config.example.toml"]), ids=name_of
)
def test_pages_are_plain_english(page: Path) -> None:
    found = [
        f"{name_of(page)}:{number}: {match[0]!r}"
        for number, line in enumerate(page.read_text().splitlines(), start=1)
        if (match := BANNED.search(line)) is not None
    ]

    assert found == []


def commands(group: click.Group, context: click.Context) -> Iterator[tuple[str, click.Command]]:
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        path = f"{context.command_path} {name}"
        yield path, command
        if isinstance(command, click.Group):
            yield from commands(command, click.Context(command, info_name=path))


def test_help_is_imperative() -> None:
    """A question, or a line that begins with "What", is not a command's summary."""
    root = click.Context(app, info_name="echod")
    odd = [
        (path, command.get_short_help_str(200))
        for path, command in commands(app, root)
        if re.match(r"(What|Whether|How|Who|Is|Be|May)\b", command.get_short_help_str(200))
        or "?" in (command.help or "")
    ]

    assert odd == []


def test_packages_are_imported_through_what_they_name() -> None:
    """A package's `__init__` exports names, and its docstring names the modules that other packages may import."""
    packages = {".".join(path.parent.relative_to(ROOT).parts) for path in MODULES if path.name == "__init__.py"}
    found = []
    for path in MODULES:
        own = ".".join(path.relative_to(ROOT).parent.parts)
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("echod."):
                for module in {_module_of(str(node.module), alias.name) for alias in node.names}:
                    package, _, name = module.rpartition(".")
                    outside = own != package and not own.startswith(f"{package}.")
                    if package in packages - {"echod"} and outside and name not in _named_modules(package):
                        found.append(f"{name_of(path)}: {module}")

    assert sorted(found) == []


def _module_of(module: str, name: str) -> str:
    path = ROOT / f"{module}.{name}".replace(".", "/")
    if path.with_suffix(".py").exists():
        return f"{module}.{name}"
    return f"{module}.__init__" if (ROOT / module.replace(".", "/")).is_dir() else module


@cache
def _named_modules(package: str) -> frozenset[str]:
    source = (ROOT / package.replace(".", "/") / "__init__.py").read_text()
    return frozenset({"__init__", *re.findall(r"`([\w.]+)`", ast.get_docstring(ast.parse(source)) or "")})
