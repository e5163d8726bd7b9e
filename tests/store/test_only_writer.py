"""Only the commit engine opens an echo file for writing. No other code calls functions that change files."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import echod

PACKAGE = Path(echod.__file__).parent

OWN_FILES_ONLY = {
    "app/forget_project.py": "what echod stores about a project, when it is removed",
    "app/import_access.py": "the copy of the plugin's database, in a temporary directory",
    "auto_memory/changes.py": "the memory of Claude Code and records of its changes, when the user asks for a repair",
    "auto_memory/copies.py": "copies of the memory of Claude Code in the state directory",
    "cli": "the service unit, the list of projects and the user's own settings",
    "daemon": "locks, heartbeat, canary and snapshot in the runtime directory",
    "files.py": "small files in the runtime directory",
    "hooks": "the spool",
    "inbox": "the spool",
    "jobs/packs.py": "the manifests of doc packs",
    "log_setup.py": "the log file",
    "mcp_server/session.py": "the signals of changed files, which the index has taken up",
    "packs": "the global store's doc packs",
    "paths.py": "echod's own directories",
    "projects/registry.py": "the lists of projects and of paused ones",
    "runtime": "locks, heartbeat and wake file in the runtime directory",
    "search/index.py": "the search index",
    "service": "the service unit",
    "sessions/forget.py": "archives of conversations and their receipts, when a session is forgotten",
    "sessions/journal.py": "archives and index of conversations, in a root with a journal of its own",
    "sync/driver.py": "git's own temporary file, in which it expects the result",
    "sync/registration.py": "made files in a temporary directory, to try the registered command",
    "sync/repository.py": "the exchange repository in the state directory, which is not memory",
    "jobs/migrate.py": "the migration lock of the workflow plugin, while a layout is moved",
    "sync/resolve.py": "a file of a merge in conflict, of which git keeps a copy first",
    "sessions/roots.py": "the directories of a root of conversations",
    "settings/loader.py": "settings",
    "state": "the database",
}
"""Modules that write files of echod's own. Every name was checked by hand. All other modules only read."""

_CHANGING_CALLS = {
    "write_text", "write_bytes", "rename", "replace", "unlink", "symlink_to", "hardlink_to", "touch", "mkdir", "rmdir",
    "chmod", "truncate", "remove", "renames", "removedirs", "rmtree", "copy", "copy2", "copyfile", "copytree", "move",
    "link", "symlink", "mkfifo", "mknod", "mkstemp", "ftruncate", "pwrite", "sendfile",
}  # fmt: skip
_CHANGING_MODULE_CALLS = {"remove", "copy", "copy2", "move", "link", "truncate", "renames"}
"""Names that lists and other values have too. They are file operations only on `os` or `shutil`."""


def changing_calls(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield line and name of the calls that could change a file."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = _name(node.func)
        if name is not None and _changes_a_file(name, node):
            yield node.lineno, name


def _name(function: ast.expr) -> str | None:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else None


def _changes_a_file(name: str, call: ast.Call) -> bool:
    if name == "open":
        return _opens_for_writing(call)
    if name not in _CHANGING_CALLS:
        return False
    owner = call.func.value if isinstance(call.func, ast.Attribute) else None
    on_module = isinstance(owner, ast.Name) and owner.id in {"os", "shutil"}
    if name == "replace":  # `path.replace(other)` has one argument, `text.replace(a, b)` and dataclasses' have more
        return on_module or (owner is not None and len(call.args) == 1 and not call.keywords)
    return on_module or name not in _CHANGING_MODULE_CALLS


def _opens_for_writing(call: ast.Call) -> bool:
    arguments = [*call.args, *(keyword.value for keyword in call.keywords)]
    written = [ast.unparse(argument) for argument in arguments]
    modes = [a.value for a in arguments if isinstance(a, ast.Constant) and isinstance(a.value, str)]
    if any("O_WRONLY" in text or "O_RDWR" in text or "O_CREAT" in text for text in written):
        return True
    return any(set(mode) <= set("rwaxbt+U") and set(mode) & set("wax+") for mode in modes)


def sources(*, with_own_files: bool) -> list[Path]:
    """Return the modules outside the store: those that have files of their own, or the others."""
    modules = []
    for path in sorted(PACKAGE.rglob("*.py")):
        below = path.relative_to(PACKAGE)
        owns = below.parts[0] in OWN_FILES_ONLY or str(below) in OWN_FILES_ONLY
        if below.parts[0] != "store" and owns is with_own_files:
            modules.append(path)
    return modules


def _module_path(path: Path) -> str:
    return str(path.relative_to(PACKAGE))


@pytest.mark.parametrize("path", sources(with_own_files=False), ids=_module_path)
def test_nothing_else_changes_files(path: Path) -> None:
    assert list(changing_calls(ast.parse(path.read_text()))) == []


@pytest.mark.parametrize("path", sources(with_own_files=True), ids=_module_path)
def test_a_module_with_files_of_its_own_never_writes_an_echo_file(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            target = node.func.value
            named = target.attr if isinstance(target, ast.Attribute) else ""
            written = named in {"memory", "knowledge"} and _changes_a_file(node.func.attr, node)
            assert not written, f"{path}:{node.lineno} writes to .{named}"


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("open(p, 'w')", 1),
        ("p.open('ab')", 1),
        ("open(p)", 0),
        ("p.open('rb')", 0),
        ("os.open(p, os.O_WRONLY)", 1),
        ("os.replace(a, b)", 1),
        ("p.replace(q)", 1),
        ("text.replace('a', 'b')", 0),
        ("replace(value, x=1)", 0),
        ("p.write_bytes(b'')", 1),
        ("shutil.rmtree(p)", 1),
    ],
)
def test_the_rule_recognizes_changing_calls(source: str, found: int) -> None:
    assert len(list(changing_calls(ast.parse(source)))) == found
