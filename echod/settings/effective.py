"""Return the settings in force, from a cache if nothing has changed since they were checked.

Checking takes some 170 ms, most of it to load pydantic, so its last results are kept in the runtime directory. A result
is used only for the same echod, settings file (path and version) and variables, and only from a private file of this
user. Errors and warnings are never kept, so that they are reported each time.

`loader`, which checks, is not imported before something has to be checked.
"""

from __future__ import annotations

import json
import os
import stat
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

from echod import __version__
from echod.errors import GARBLED_ERRORS, ConfigurationError
from echod.files import file_version, insecure_file_warnings, open_regular, write_private
from echod.lazy_imports import lazy_imports
from echod.paths import ENV_PREFIX, PATH_VARIABLES, all_defaults
from echod.settings import schema
from echod.settings.schema import Settings

with lazy_imports(__name__):
    import subprocess

    from echod.settings import loader  # pydantic takes 170 ms to load

Check: TypeAlias = Callable[[Path, Mapping[str, str]], Settings]
_Key: TypeAlias = list[Any]
_Variant: TypeAlias = tuple[_Key, Any]

_MAX_CACHE_BYTES: Final = 256 * 1024
_MAX_VARIANTS: Final = 8
_OTHERS_MASK: Final = 0o077
_TICK_NS: Final = 100_000_000
"""A change within one tick of a file system's clock (10 ms at most on Linux) leaves the times as they are."""

_CHECK_SECONDS: Final = 30.0


def check_in_process(file: Path, environ: Mapping[str, str]) -> Settings:
    """Check the settings in this process, which loads pydantic; see `load_settings`."""
    return loader.load_settings(file, environ)


def check_in_child(file: Path, environ: Mapping[str, str]) -> Settings:
    """Check the settings in a child process, for a daemon that would keep pydantic's 20 MB for its whole life."""
    # -P: what is in the working directory is not imported.
    command = [sys.executable, "-P", "-m", "echod.settings.loader", str(file)]
    try:
        done = subprocess.run(command, env=environ, capture_output=True, timeout=_CHECK_SECONDS, check=True)
        answer = json.loads(done.stdout)
        if "error" not in answer:
            return schema.from_plain(answer["settings"])
    except (OSError, subprocess.SubprocessError, ValueError, KeyError, TypeError):
        return check_in_process(file, environ)  # an installation that -P does not find
    raise ConfigurationError(answer["error"])


def effective_settings(
    file: Path, environ: Mapping[str, str], cache: Path, *, check: Check = check_in_process
) -> Settings:
    """Return the settings in force. `file` need not exist. `check` is called if `cache` does not have them.

    Raises:
        ConfigurationError: they cannot be used; the message names every wrong key, with file and line.
    """
    if all_defaults(file, environ):
        return Settings()
    # The version is taken before the file is read, so that a change in between is noticed the next time.
    key = _cache_key(file, environ)
    variants = _read_variants(cache)
    for known_key, plain in variants:
        if known_key == key:
            try:
                return schema.from_plain(plain)
            except GARBLED_ERRORS:
                break
    settings = check(file, environ)
    if not _may_change_unnoticed(key):
        _write_variants(cache, [(key, schema.to_plain(settings)), *(entry for entry in variants if entry[0] != key)])
    return settings


def _cache_key(file: Path, environ: Mapping[str, str]) -> _Key:
    """Return everything that the result of a check depends on, as JSON has it."""
    try:
        version = list(file_version(file.stat()))
    except OSError:
        version = None
    # A file that ECHOD_CONFIG names must exist; a default one need not.
    return [str(file), version, bool(environ.get("ECHOD_CONFIG")), schema.set_variables(environ)]


def _may_change_unnoticed(key: _Key) -> bool:
    """Return whether the file was written so recently that the next write could have the same version."""
    version = key[1]
    return version is not None and time.time_ns() - max(version[2:]) < _TICK_NS


def _read_variants(cache: Path) -> list[_Variant]:
    """Return the results that the cache has; none if it cannot be read, is damaged, or others could have written it."""
    try:
        with open_regular(cache, follow_symlinks=False) as file:
            status = os.fstat(file.fileno())
            if status.st_uid != os.getuid() or stat.S_IMODE(status.st_mode) & _OTHERS_MASK:
                return []
            data = file.read(_MAX_CACHE_BYTES + 1)
        content = json.loads(data)
        if len(data) > _MAX_CACHE_BYTES or content["echod"] != __version__:
            return []
        return [(key, plain) for key, plain in content["variants"]]
    except (OSError, *GARBLED_ERRORS):
        return []


def _write_variants(cache: Path, variants: list[_Variant]) -> None:
    content = {"echod": __version__, "variants": variants[:_MAX_VARIANTS]}
    try:
        write_private(cache, json.dumps(content, separators=(",", ":")).encode())
    except OSError:
        return  # the next process checks again


def settings_warnings(file: Path, environ: Mapping[str, str], uid: int) -> tuple[str, ...]:
    """Return a sentence for each variable that sets nothing, and for each way in which others can change the file."""
    return (*unknown_variable_warnings(environ), *insecure_file_warnings(file, uid))


def unknown_variable_warnings(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return a warning for each `ECHOD_*` variable that sets nothing."""
    names = {name for name in environ if name.startswith(ENV_PREFIX)} - PATH_VARIABLES
    unknown = sorted(names - schema.known_variables()) if names else []
    if not unknown:
        return ()

    return tuple(f"{name} is not a setting of echod{loader.variable_suggestion(name) or '.'}" for name in unknown)
