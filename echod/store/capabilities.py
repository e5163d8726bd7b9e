"""Probe the file system under a store once, by trying each operation with two files of echod's own.

Without exchange a file that is replaced in the wrong microsecond is lost, and without leases open writers cannot be
detected. Such a store is written only when its files have been unchanged for a while, and `doctor` reports it.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from echod.paths import PRIVATE_FILE_MODE
from echod.store.fs import Dir, OpenWriters, RenameUnsupportedError, exchange, open_dir, read_lease

_ONE, _OTHER = ".echod-probe-one", ".echod-probe-two"


class Capabilities(NamedTuple):
    """The supported operations: atomic exchange of two names, read leases, a second name for a file."""

    exchange: bool
    lease: bool
    hard_link: bool

    @property
    def full(self) -> bool:
        """True if every promise holds here."""
        return self.exchange and self.lease


@dataclass(slots=True)
class CapabilityCache:
    """Capabilities by device, probed once in each process."""

    _by_device: dict[int, Capabilities] = field(default_factory=dict)

    def get(self, directory: Dir) -> Capabilities:
        """Return the capabilities of an open directory."""
        device = os.fstat(directory.fd).st_dev
        if device not in self._by_device:
            self._by_device[device] = _probe_directory(directory)
        return self._by_device[device]


def probe(directory: Path) -> Capabilities:
    """Return the capabilities of a directory. Raise an `OSError` if it is not writable or the disk is full."""
    with open_dir(directory, ()) as opened:
        return _probe_directory(opened)


def _probe_directory(directory: Dir) -> Capabilities:
    try:
        for name in (_ONE, _OTHER):
            directory.unlink(name)
            with directory.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE_FILE_MODE):
                pass
        return Capabilities(_supports_exchange(directory), _supports_lease(directory), _supports_hard_link(directory))
    finally:
        for name in (_ONE, _OTHER):
            directory.unlink(name)


def _supports_exchange(directory: Dir) -> bool:
    before = directory.inode(_ONE)
    try:
        exchange(directory, _ONE, directory, _OTHER)
    except RenameUnsupportedError:
        return False
    return directory.inode(_OTHER) == before


def _supports_lease(directory: Dir) -> bool:
    with directory.open(_ONE, os.O_RDONLY) as fd, read_lease(fd) as writers:
        return writers is OpenWriters.NONE


def _supports_hard_link(directory: Dir) -> bool:
    directory.unlink(_OTHER)
    with suppress(OSError):
        os.link(_ONE, _OTHER, src_dir_fd=directory.fd, dst_dir_fd=directory.fd)
        return True
    return False
