"""Files that others made are read within bounds, and what is no file is never waited for."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from echod.files import open_regular, read_regular
from tests.hostile.test_files import KINDS, sparse


def test_a_file_is_read_whole_up_to_its_limit(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"x" * 100)

    assert read_regular(file, 100) == b"x" * 100
    with pytest.raises(OSError, match="too large"):
        read_regular(file, 99)
    with open_regular(file) as opened:
        assert opened.read(3) == b"xxx"


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_file_is_not_waited_for(tmp_path: Path, kind: str) -> None:
    KINDS[kind](tmp_path / "odd")
    before = psutil.Process().num_fds()

    with pytest.raises(OSError, match=r"not a plain file|No such device"):
        read_regular(tmp_path / "odd", 100)

    assert psutil.Process().num_fds() == before


def test_a_link_to_a_device_is_none_either(tmp_path: Path) -> None:
    (tmp_path / "endless").symlink_to("/dev/zero")

    with pytest.raises(OSError, match="not a plain file"):
        read_regular(tmp_path / "endless", 100)


def test_a_sparse_file_costs_no_memory(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="too large"):
        read_regular(sparse(tmp_path / "huge"), 1000)
