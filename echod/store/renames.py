"""The two renames that never clobber; both say `UnsupportedError` where the file system cannot do them."""

from __future__ import annotations

import ctypes
import errno
import os
import sys

from echod.store.fs import Dir

_UNSUPPORTED = {errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP}
_libc = ctypes.CDLL(None, use_errno=True)

if sys.platform == "darwin":
    _rename_call, _NOREPLACE, _EXCHANGE = "renameatx_np", 4, 2
else:
    _rename_call, _NOREPLACE, _EXCHANGE = "renameat2", 1, 2


class UnsupportedError(Exception):
    """This file system or platform has no such rename."""


def exchange(directory: Dir, one: str, other: str) -> None:
    """Swap two names atomically; neither is ever absent.

    Raises:
        UnsupportedError: the file system cannot.
        OSError: one of the names is missing, or the call failed.
    """
    _rename(directory, one, directory, other, _EXCHANGE)


def move_new(source: Dir, name: str, target: Dir, new_name: str) -> None:
    """Rename, never onto something that exists.

    Raises:
        FileExistsError: `new_name` is taken.
        FileNotFoundError: `name` is gone.
        OSError: the call failed.
    """
    try:
        rename_new(source, name, target, new_name)
    except UnsupportedError:
        os.link(name, new_name, src_dir_fd=source.fd, dst_dir_fd=target.fd, follow_symlinks=False)
        os.unlink(name, dir_fd=source.fd)


def rename_new(source: Dir, name: str, target: Dir, new_name: str) -> None:
    """The same in one step, for directories too.

    Raises:
        UnsupportedError: the file system cannot.
        OSError: as `move_new`.
    """
    _rename(source, name, target, new_name, _NOREPLACE)


def _rename(source: Dir, name: str, target: Dir, new_name: str, flags: int) -> None:
    call = getattr(_libc, _rename_call, None)
    if call is None:
        raise UnsupportedError(_rename_call)
    if call(source.fd, os.fsencode(name), target.fd, os.fsencode(new_name), flags) == 0:
        return
    code = ctypes.get_errno()
    if code in _UNSUPPORTED:
        raise UnsupportedError(os.strerror(code))
    raise OSError(code, os.strerror(code), str(source.path / name))
