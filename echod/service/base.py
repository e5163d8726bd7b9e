"""Files that echod writes in directories of other programs: known by a mark, written whole or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path

from echod.service.errors import ForeignFileError, ServiceError

MARK = b"Managed by echod"


class ManagedFile:
    """One file of ours in a directory that others use too."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> bytes | None:
        """Its bytes, or None if it is not there.

        Raises:
            ServiceError: it cannot be read.
        """
        try:
            return self.path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise ServiceError(f"{self.path} cannot be read ({error.strerror}).") from error

    def check_ours(self) -> None:
        """Raise unless it is missing or has our mark.

        Raises:
            ForeignFileError: somebody else wrote it.
        """
        found = self.read()
        if found is not None and MARK not in found:
            raise ForeignFileError(
                f"{self.path} was not written by echod; move it away, or say --force to have it replaced."
            )

    def write(self, data: bytes) -> bool:
        """Make its content `data`; False if it was that already.

        Raises:
            ServiceError: it cannot be written.
        """
        if self.read() == data:
            return False
        stage = self.path.with_name(f".{self.path.name}.{secrets.token_hex(4)}")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with stage.open("xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            stage.replace(self.path)
        except OSError as error:
            raise ServiceError(f"{self.path} cannot be written ({error.strerror}).") from error
        finally:
            with contextlib.suppress(OSError):
                stage.unlink(missing_ok=True)
        return True

    def remove(self) -> bool:
        """Remove it; False if it was not there.

        Raises:
            ServiceError: it cannot be removed.
        """
        try:
            self.path.unlink()
        except FileNotFoundError:
            return False
        except OSError as error:
            raise ServiceError(f"{self.path} cannot be removed ({error.strerror}).") from error
        return True
