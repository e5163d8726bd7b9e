"""Imports that load their module at the first use."""

from __future__ import annotations

import ast
import builtins
import importlib
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import echod
from echod.lazy import lazy_imports

SOURCE = """
from __future__ import annotations

import {eager}
from echod.lazy import lazy_imports

with lazy_imports(__name__):
    import lazy_one
    from lazy_package import lazy_two, absent as renamed
"""


@pytest.fixture
def importer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    (tmp_path / "lazy_package").mkdir()
    for name in ("lazy_one", "lazy_package/__init__", "lazy_package/lazy_two", "eager_one"):
        (tmp_path / f"{name}.py").write_text("value = 7\n")
    (tmp_path / "importer.py").write_text(SOURCE.format(eager="eager_one"))
    monkeypatch.syspath_prepend(str(tmp_path))
    names = ("lazy_one", "lazy_package", "lazy_package.lazy_two", "eager_one", "importer")
    for name in names:
        monkeypatch.delitem(sys.modules, name, raising=False)
    module = builtins.__import__("importer")
    yield module
    for name in names:
        sys.modules.pop(name, None)


def test_a_lazy_module_is_loaded_at_its_first_use(importer: ModuleType) -> None:
    assert {"lazy_one", "lazy_package", "lazy_package.lazy_two"} & set(sys.modules) == set()
    assert "eager_one" in sys.modules

    assert importer.lazy_one.value == 7
    assert "lazy_one" in sys.modules
    assert "lazy_package" not in sys.modules

    assert importer.lazy_two.value == 7
    assert "lazy_package.lazy_two" in sys.modules


def test_what_a_module_gets_later_is_seen(importer: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    assert importer.lazy_one.value == 7

    monkeypatch.setattr("lazy_one.value", 8)

    assert importer.lazy_one.value == 8


def test_a_missing_module_is_an_import_error_at_its_first_use(importer: ModuleType) -> None:
    with pytest.raises(ImportError, match="absent"):
        _ = importer.renamed.value


def test_a_missing_name_is_an_attribute_error(importer: ModuleType) -> None:
    with pytest.raises(AttributeError, match="nothing"):
        _ = importer.lazy_one.nothing


@pytest.mark.parametrize("statement", ["import xml.dom", "from . import sibling"])
def test_what_cannot_be_lazy_is_refused(statement: str) -> None:
    source = f"from echod.lazy import lazy_imports\nwith lazy_imports('some.module'):\n    {statement}\n"

    with pytest.raises(ImportError, match="cannot be lazy"):
        exec(source, {"__name__": "some.module", "__package__": "some"})  # noqa: S102 - a module needs no file here
    assert builtins.__import__("json").__name__ == "json"


def test_other_modules_import_as_ever_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the module that asked is lazy: others may be loaded by a thread at the same moment."""
    (tmp_path / "other_module.py").write_text("from json import dumps\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "other_module", raising=False)
    source = "from echod.lazy import lazy_imports\nwith lazy_imports('some.module'):\n    import other_module\n"

    exec(source, {"__name__": "another.module"})  # noqa: S102 - a module needs no file here

    assert callable(sys.modules.pop("other_module").dumps)


def test_blocks_of_many_threads_restore_the_import() -> None:
    before = builtins.__import__

    def enter() -> None:
        for _ in range(200):
            with lazy_imports("some.module"):
                pass

    threads = [threading.Thread(target=enter) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert builtins.__import__ is before


def _lazy_modules() -> list[str]:
    """Every module that a block of lazy imports in the package names."""
    found: set[str] = set()
    for path in Path(echod.__file__).parent.rglob("*.py"):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.With) and "lazy_imports" in ast.unparse(node.items[0]):
                for statement in ast.walk(node):
                    if isinstance(statement, ast.Import):
                        found.update(name.name for name in statement.names)
                    elif isinstance(statement, ast.ImportFrom):
                        found.update(f"{statement.module}.{name.name}" for name in statement.names)
    return sorted(found)


@pytest.mark.parametrize("name", _lazy_modules())
def test_what_is_named_in_a_block_is_a_module(name: str) -> None:
    """A mistake would be an error only where the module is first used."""
    if name == "zstandard":
        pytest.importorskip(name)
    assert importlib.import_module(name)
