"""Load modules and compile regular expressions where they are first used, though they are written at the top of a file.

A module of its own, since it comes before everything that it helps to load late. `lazy_imports` is like the `lazy
import` of PEP 810 (Python 3.15), except that a name stays a stand-in for its module: read what you need as
`module.name`. To set a name, set it in the module itself.
"""

from __future__ import annotations

import builtins
import re
import sys
from _thread import allocate_lock
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import overload

_lock = allocate_lock()
"""Blocks of two threads must not restore each other's import. No block waits for anything while it has the lock."""


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

    with _lock:
        eager = builtins.__import__
        builtins.__import__ = import_lazily
        try:
            yield
        finally:
            builtins.__import__ = eager


class LazyPattern:
    """A regular expression that is compiled when it is first used. It has the attributes of the compiled one.

    Use `lazy_pattern`, which has the right type.
    """

    def __init__(self, pattern: str | bytes, flags: int) -> None:
        self.pattern = pattern
        self.initial_flags = flags

    def __getattr__(self, name: str) -> object:
        """Compile the expression, keep its methods here, and return its `name`."""
        compiled = re.compile(self.pattern, self.initial_flags)
        self.__dict__.update({each: getattr(compiled, each) for each in _PATTERN_ATTRIBUTES})
        return getattr(compiled, name)


_PATTERN_ATTRIBUTES = (
    "search", "match", "fullmatch", "finditer", "findall", "split", "sub", "subn", "flags", "groups", "groupindex",
)  # fmt: skip


@overload
def lazy_pattern(pattern: str, flags: int = 0) -> re.Pattern[str]: ...
@overload
def lazy_pattern(pattern: bytes, flags: int = 0) -> re.Pattern[bytes]: ...
def lazy_pattern(pattern: str | bytes, flags: int = 0) -> object:
    """Return a regular expression that is compiled when it is first used.

    For the expressions of modules, as `re.compile`. Compiling takes up to a millisecond, a command imports hundreds of
    them, and most texts need few.
    """
    return LazyPattern(pattern, flags)
