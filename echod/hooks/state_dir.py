"""Locate the state directory from the platform and `ECHOD_STATE_DIR` alone.

The result is the same as in `echod.paths`, without its imports; a test compares the two. Settings are never read, so
the hook and the daemon cannot disagree. Small because a hook may load nothing it does not need.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False  # typing itself takes longer to import than a hook may run
if TYPE_CHECKING:
    from collections.abc import Mapping

APP_NAME = "echod"
_MACOS_STATE_HOME = "Library/Application Support"
_XDG_STATE_HOME = ".local/state"


def state_directory(environ: Mapping[str, str], platform: str) -> str:
    """Return the absolute path of the state directory.

    Args:
        environ: the process environment.
        platform: `sys.platform`.

    Raises:
        ValueError: `ECHOD_STATE_DIR` is not an absolute path, so there is no state directory.
        KeyError: the user has no home directory.
    """
    configured = environ.get("ECHOD_STATE_DIR", "")
    if configured:
        path = os.path.expanduser(configured)
        if not os.path.isabs(path):
            raise ValueError(configured)
        return path
    xdg = environ.get("XDG_STATE_HOME", "")
    if os.path.isabs(xdg):
        return os.path.join(xdg, APP_NAME)
    return os.path.join(_home(environ), _MACOS_STATE_HOME if platform == "darwin" else _XDG_STATE_HOME, APP_NAME)


def _home(environ: Mapping[str, str]) -> str:
    home = environ.get("HOME", "")
    if os.path.isabs(home):
        return home
    import pwd

    return pwd.getpwuid(os.getuid()).pw_dir
