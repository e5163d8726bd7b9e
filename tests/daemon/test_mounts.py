from __future__ import annotations

import sys
from pathlib import Path

import pytest

from echod.runtime.system import filesystem_type, is_remote_filesystem, read_mounts

MOUNTS = r"""
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
30 22 0:27 / /home rw,relatime shared:2 master:3 - nfs4 server:/home rw,vers=4.2
31 30 0:28 / /home/me/with\040space rw - tmpfs tmpfs rw
32 22 0:29 / /mnt rw - ext4 /dev/vdb rw
33 32 0:30 / /mnt rw - fuse.sshfs host: rw
34 22 0:31 / /home2 rw - xfs /dev/vdc rw
torn line
35 22 0:32 /
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        pytest.param("/", "ext4", id="the root itself"),
        pytest.param("/etc/hosts", "ext4", id="only the root covers it"),
        pytest.param("/home/me/project", "nfs4", id="the nearest mount"),
        pytest.param("/home/me/with space/x", "tmpfs", id="escaped name"),
        pytest.param("/mnt/x", "fuse.sshfs", id="a later mount covers an earlier one"),
        pytest.param("/home2/x", "xfs", id="a name that begins alike"),
        pytest.param("/homeless", "ext4", id="a name that begins alike and is no mount"),
    ],
)
def test_the_nearest_mount_decides(path: str, kind: str) -> None:
    assert filesystem_type(Path(path), MOUNTS) == kind


def test_without_a_mount_table_nothing_is_claimed() -> None:
    assert filesystem_type(Path("/x"), "") is None
    assert not is_remote_filesystem(None)


@pytest.mark.parametrize("kind", ["nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs", "drvfs", "vboxsf", "virtiofs"])
def test_types_that_miss_changes_by_other_machines(kind: str) -> None:
    assert is_remote_filesystem(kind)


@pytest.mark.parametrize("kind", ["ext4", "btrfs", "xfs", "tmpfs", "overlay", "fuseblk", "apfs", "nfsd"])
def test_types_that_report_everything(kind: str) -> None:
    assert not is_remote_filesystem(kind)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has a mount table to read")
def test_the_real_table_contains_the_type_of_a_real_directory() -> None:
    assert filesystem_type(Path("/proc/self"), read_mounts()) == "proc"
