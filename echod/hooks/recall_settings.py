"""Read `hooks.recall`, and a project's `recall`, as the settings do, without the libraries that those take.

The usual forms are read line by line. A settings file that has `recall` in any other form is parsed by the library
after all. A mode that does not exist switches the hooks off, as the settings are invalid then.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False  # typing itself takes longer to import than a hook may run
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

MODES = ("off", "failure", "edit", "all")
DEFAULT_MODE = "failure"
PROJECT_FILES = ((".rune", "talisman.yml"), (".claude", "talisman.yml"), (".claude", "rune-config.yml"))
_MAX_CONFIG_BYTES = 256 * 1024
_FALSE = ("false", "no", "off", "n")


def parse_json(text: str) -> Any:
    """Return the value of a JSON text. The C scanner is used alone, since the package takes as long as a hook may."""
    try:
        from _json import make_scanner

        scan: Any = make_scanner
        return scan(_ScannerContext())(text.lstrip(), 0)[0]
    except (ImportError, AttributeError, TypeError):
        import json

        return json.loads(text)


class _ScannerContext:
    """The options of the scanner, as `json.loads` has them."""

    def __init__(self) -> None:
        self.strict = False
        self.object_hook = None
        self.object_pairs_hook = None
        self.parse_float = float
        self.parse_int = int
        self.parse_constant = float
        self.memo: dict[str, str] = {}


def quote_json(text: str) -> str:
    """Return a text as a JSON string in ASCII."""
    try:
        from _json import encode_basestring_ascii
    except ImportError:
        from json.encoder import py_encode_basestring_ascii as encode_basestring_ascii
    quoted: str = encode_basestring_ascii(text)
    return quoted


def user_mode(environ: Mapping[str, str], platform: str) -> str:
    """Return the user's mode: the variable's, else the settings file's, else the default."""
    mode: Any = environ.get("ECHOD_HOOKS__RECALL")
    if mode is None and "recall" in environ.get("ECHOD_HOOKS", ""):
        mode = parse_json(environ["ECHOD_HOOKS"]).get("recall")
    if mode is None:
        mode = _mode_in_file(config_file(environ, platform))
    return mode if mode in MODES else "off"


def config_file(environ: Mapping[str, str], platform: str) -> str:
    """Return the path of the settings file, as `echod.paths` does."""
    configured = environ.get("ECHOD_CONFIG", "")
    if configured:
        return os.path.expanduser(configured)
    xdg = environ.get("XDG_CONFIG_HOME", "")
    if os.path.isabs(xdg):
        return os.path.join(xdg, "echod", "config.toml")
    home = environ.get("HOME", "")
    if not os.path.isabs(home):
        import pwd

        home = pwd.getpwuid(os.getuid()).pw_dir
    place = "Library/Application Support" if platform == "darwin" else ".config"
    return os.path.join(home, place, "echod", "config.toml")


def _mode_in_file(path: str) -> str:
    text = _read(path)
    if "recall" not in text:
        return DEFAULT_MODE
    table, found = "", None
    is_plain = '"""' not in text and "'''" not in text
    for whole in text.split("\n"):
        line = whole.strip()
        if line.startswith("["):
            table = line.partition("#")[0].strip()
        elif "recall" in line and not line.startswith("#"):
            key, equals, value = (part.strip() for part in line.partition("="))
            value = value.partition("#")[0].strip()
            if table == "[hooks]" and key == "recall" and equals and value[:1] in "\"'" and value[-1:] == value[:1]:
                found = value[1:-1]
            else:
                is_plain = False
    if is_plain:
        return DEFAULT_MODE if found is None else found
    import tomllib

    hooks = tomllib.loads(text).get("hooks", {})
    return str(hooks.get("recall", DEFAULT_MODE)) if isinstance(hooks, dict) else "off"


def project_allows(project: str) -> bool:
    """Return whether a project's own settings file leaves the hooks on. It may only switch them off."""
    for directory, name in PROJECT_FILES:
        path = os.path.join(project, directory, name)
        if os.path.lexists(path):
            is_linked = os.path.islink(path) or os.path.islink(os.path.dirname(path))
            return is_linked or _allows("" if is_linked else _read(path))
    return True


def _allows(text: str) -> bool:
    """Return whether `recall` below `echoes`, at any depth, is not a word for no."""
    if "recall" not in text:
        return True
    inside = False
    for line in text.split("\n"):
        if line[:1] not in (" ", "\t", "#", "\r", ""):
            inside = line.partition(":")[0].strip("\"' ") == "echoes"
            line = line.partition(":")[2]  # noqa: PLW2901  the section may be on one line
        if not inside or "recall" not in line.partition("#")[0]:
            continue
        for part in line.partition("#")[0].replace("{", ",").replace("}", ",").split(","):
            key, _, value = part.partition(":")
            if key.strip("\"' \t") == "recall" and value.strip("\"' \t\r").lower() in _FALSE:
                return False
    return True


def _read(path: str) -> str:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return ""
    try:
        data = os.read(descriptor, _MAX_CONFIG_BYTES + 1)
    except OSError:
        return ""
    finally:
        os.close(descriptor)
    return data.decode("utf-8", "replace") if len(data) <= _MAX_CONFIG_BYTES else ""
