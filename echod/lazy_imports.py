"""Import modules at the top of a file and load them where they are first used.

One module, since it must come before everything that it helps to load late. The semantics are those of `lazy import`
in PEP 810, which Python has from 3.15.
"""

from __future__ import annotations

import builtins
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import ModuleType


class LazyModule(ModuleType):
    """A module that is loaded when one of its names is first read."""

    def __getattr__(self, name: str) -> object:
        """Load the module, unless that was done, and return its `name`."""
        builtins.__import__(self.__name__)
        return getattr(sys.modules[self.__name__], name)


@contextmanager
def lazy_imports(importer: str) -> Iterator[None]:
    """Make the imports of this block lazy in the module named `importer`, and in no other.

    For what takes long to load and few callers need: `with lazy_imports(__name__): import yaml`. Only whole modules can
    be lazy: `import module` or `from package import module`. An import that fails does so at the first use.
    """
    eager = builtins.__import__

    def import_lazily(
        name: str,
        globals: Mapping[str, object] | None = None,  # noqa: A002 - the name that the interpreter passes
        locals: Mapping[str, object] | None = None,  # noqa: A002
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        if globals is None or globals.get("__name__") != importer:
            return eager(name, globals, locals, fromlist, level)
        if level or (not fromlist and "." in name):
            raise ImportError(f"`{name}` cannot be lazy: write `from package import module`")
        if not fromlist:
            return LazyModule(name)
        package = ModuleType(name)
        for module in fromlist:
            setattr(package, module, LazyModule(f"{name}.{module}"))
        return package

    builtins.__import__ = import_lazily
    try:
        yield
    finally:
        builtins.__import__ = eager
