"""Files of other programs are read within bounds, private files are replaced whole, and versions show every change."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from echod import files
from echod.files import VersionedCache, file_version, open_regular, read_regular, regular_file_version
from tests.hostile.test_files import KINDS, sparse

WRITERS = [files.write_private, files.write_private_durable]


class TestReading:
    def test_a_file_is_read_whole_up_to_its_limit(self, tmp_path: Path) -> None:
        file = tmp_path / "file"
        file.write_bytes(b"x" * 100)

        assert read_regular(file, 100) == b"x" * 100
        with pytest.raises(OSError, match="too large"):
            read_regular(file, 99)
        with open_regular(file) as opened:
            assert opened.read(3) == b"xxx"

    @pytest.mark.parametrize("kind", KINDS)
    def test_what_is_not_a_regular_file_is_not_waited_for(self, tmp_path: Path, kind: str) -> None:
        KINDS[kind](tmp_path / "odd")
        before = psutil.Process().num_fds()

        with pytest.raises(OSError, match="not a plain file"):
            read_regular(tmp_path / "odd", 100)

        assert psutil.Process().num_fds() == before

    def test_a_link_to_a_device_is_not_a_regular_file(self, tmp_path: Path) -> None:
        (tmp_path / "endless").symlink_to("/dev/zero")

        with pytest.raises(OSError, match="not a plain file"):
            read_regular(tmp_path / "endless", 100)

    def test_a_sparse_file_costs_no_memory(self, tmp_path: Path) -> None:
        with pytest.raises(OSError, match="too large"):
            read_regular(sparse(tmp_path / "huge"), 1000)

    def test_a_link_is_followed_only_where_that_is_allowed(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_bytes(b"x")
        (tmp_path / "link").symlink_to("file")

        assert read_regular(tmp_path / "link", 1) == b"x"
        with pytest.raises(OSError, match="link") as caught:
            read_regular(tmp_path / "link", 1, follow_symlinks=False)
        assert caught.value.errno == errno.ELOOP

    def test_a_relative_path_starts_from_an_open_directory(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_bytes(b"x")
        directory = os.open(tmp_path, os.O_RDONLY)
        try:
            assert read_regular(Path("file"), 1, dir_fd=directory) == b"x"
        finally:
            os.close(directory)


@pytest.mark.parametrize("write", WRITERS)
class TestWriting:
    def test_the_file_is_private_and_nothing_else_remains(
        self, tmp_path: Path, write: Callable[[Path, bytes], None]
    ) -> None:
        file = tmp_path / "made" / "file"
        before = os.umask(0)
        try:
            write(file, b"old")
            write(file, b"new")
        finally:
            os.umask(before)

        assert file.read_bytes() == b"new"
        assert list(file.parent.iterdir()) == [file]
        assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)

    def test_a_failed_write_keeps_the_old_file(
        self, tmp_path: Path, write: Callable[[Path, bytes], None], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        file = tmp_path / "file"
        write(file, b"old")

        def full(*_: object) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(files, "write_all", full)
        with pytest.raises(OSError, match="No space left"):
            write(file, b"new")

        assert file.read_bytes() == b"old"
        assert list(tmp_path.iterdir()) == [file]


class TestVersions:
    def test_a_change_of_the_same_size_and_time_is_seen(self, tmp_path: Path) -> None:
        file = tmp_path / "file"
        file.write_bytes(b"one")
        status = file.stat()
        version = file_version(status)
        while file_version(file.stat()) == version:  # within one tick of the kernel's clock the change time is the same
            file.write_bytes(b"two")
            os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))

        assert file.stat().st_mtime_ns == status.st_mtime_ns

    def test_only_regular_files_of_a_bearable_size_have_a_version(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_bytes(b"four")
        (tmp_path / "link").symlink_to("file")

        assert regular_file_version(tmp_path / "file", 4) == file_version((tmp_path / "file").stat())
        assert regular_file_version(tmp_path / "file", 3) is None
        assert regular_file_version(tmp_path / "link", 4) is None
        assert regular_file_version(tmp_path / "absent", 4) is None

    def test_a_value_is_computed_once_for_each_version_and_forgotten_when_unused(self) -> None:
        cache: VersionedCache[int] = VersionedCache()
        calls: list[int] = []

        def compute() -> int:
            calls.append(len(calls))
            return calls[-1]

        assert [cache.get_or_compute("a", version, compute) for version in (1, 1, 2)] == [0, 0, 1]
        cache.evict_unused()
        assert cache.get_or_compute("a", 2, compute) == 1
        cache.evict_unused()
        cache.evict_unused()
        assert cache.get_or_compute("a", 2, compute) == 2


class TestSyncOnMacos:
    """`F_FULLFSYNC` is 51 in `sys/fcntl.h` there. Elsewhere Python does not have it."""

    def sync(self, monkeypatch: pytest.MonkeyPatch, code: int | None) -> list[str]:
        calls: list[str] = []

        def control(_descriptor: int, command: int) -> None:
            calls.append(f"fcntl {command}")
            if code is not None:
                raise OSError(code, os.strerror(code))

        monkeypatch.setattr(fcntl, "F_FULLFSYNC", 51, raising=False)
        monkeypatch.setattr(fcntl, "fcntl", control)
        monkeypatch.setattr(os, "fsync", lambda _descriptor: calls.append("fsync"))
        files.full_fsync(3)
        return calls

    def test_the_drive_is_synced_too(self, monkeypatch: pytest.MonkeyPatch) -> None:
        assert self.sync(monkeypatch, None) == ["fcntl 51"]

    @pytest.mark.parametrize("code", [errno.ENOTSUP, errno.ENOTTY, errno.EINVAL])
    def test_where_the_file_system_cannot_the_file_is(self, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
        assert self.sync(monkeypatch, code) == ["fcntl 51", "fsync"]

    def test_a_failed_sync_is_final(self, monkeypatch: pytest.MonkeyPatch) -> None:
        with pytest.raises(OSError, match=os.strerror(errno.EIO)):
            self.sync(monkeypatch, errno.EIO)
