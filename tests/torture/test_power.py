"""Power loss: the disk's content at any moment recovers to old or new, never to anything else.

The file system is in an image file. A copy of the image, taken while commits run, is what a power cut would leave.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.torture.entries import count_entries, entry, is_whole, named_entries
from tests.torture.service import SHORT_LIMITS, StressProject, in_child, reconcile_once

_SIZE = 24 * 1024 * 1024
_ROUNDS = 8


def _unavailable() -> str | None:
    if os.name != "posix" or os.geteuid() != 0:
        return "mounting an image needs root"
    missing = [tool for tool in ("mkfs.ext4", "mount", "losetup") if shutil.which(tool) is None]
    return f"missing: {', '.join(missing)}" if missing else None


pytestmark = pytest.mark.skipif(_unavailable() is not None, reason=str(_unavailable()))


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"{' '.join(command)}: {done.stderr.strip()}")


@contextmanager
def mounted(image: Path, mount: Path) -> Iterator[None]:
    """Mount an ext4 image. With `auto_da_alloc` off the file system hides no forgotten fsync."""
    _run("mount", "-o", "loop,noauto_da_alloc", str(image), str(mount))
    try:
        yield
    finally:
        subprocess.run(["umount", str(mount)], check=True)


def _run_service(project: StressProject, log: Path) -> None:
    """Add findings one by one. Each is acknowledged outside the disk once it is committed."""
    engine = project.engine(SHORT_LIMITS)
    acknowledged = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    for number in range(10_000):
        name = f"f{number}"
        path = project.role.path / f"agent{number}-findings.md"
        path.write_bytes(entry(name))
        with path.open("rb") as file:
            os.fsync(file.fileno())
        parent = os.open(path.parent, os.O_RDONLY)
        os.fsync(parent)
        os.close(parent)
        reconcile_once(project, engine, keep=5)
        os.write(acknowledged, f"{name}\n".encode())


def cut_power(base: Path, after: float) -> list[str]:
    """Let a service work, copy the image after a while, recover on the copy, and return the problems.

    Every cut has images of its own. A mount namespace that another test makes keeps a mount alive, and the kernel then
    shows its old content again to any process that mounts a file of the same inode.
    """
    directory = Path(tempfile.mkdtemp(dir=base))
    image, copy, mount, log = (
        directory / "disk.img",
        directory / "copy.img",
        directory / "disk",
        directory / "acknowledged",
    )
    mount.mkdir()
    with image.open("wb") as file:
        file.truncate(_SIZE)
    _run("mkfs.ext4", "-q", "-F", str(image))
    log.write_bytes(b"")
    project = StressProject(mount / "arena")
    with mounted(image, mount):
        project.create(*(entry(f"p{number}") for number in range(9)))
        subprocess.run(["sync", "-f", str(mount)], check=True)
        worker = in_child(lambda: _run_service(project, log))
        time.sleep(after)
        os.kill(worker, signal.SIGSTOP)  # copying takes a moment, a power cut does not
        os.waitpid(worker, os.WUNTRACED)
        acknowledged = log.read_text().split()
        shutil.copyfile(image, copy)
        os.kill(worker, signal.SIGKILL)
        os.waitpid(worker, 0)
    # In the same place, because the journal identifies a store by its path.
    with mounted(copy, mount):
        wrong = _find_losses(project, acknowledged)
    shutil.rmtree(directory)
    return wrong


def _find_losses(project: StressProject, acknowledged: list[str]) -> list[str]:
    engine = project.engine(SHORT_LIMITS)
    for lock in (project.base / "project/tmp").iterdir():
        os.utime(lock, (0, 0))  # no machine boots within the 30 s after which any program may break a lock
    recovery = engine.recover([project.store])
    wrong = [f"deferred: {deferred.reason}" for deferred in recovery.deferred]
    wrong += ["the journal is not there"] if acknowledged and not engine.history([project.store]) else []
    for _ in range(12):
        if not reconcile_once(project, engine, keep=5) and not project.staged_files():
            break
    memory, archive = count_entries([project.memory]), count_entries(project.archives())
    wanted = [f"p{number}" for number in range(9)] + acknowledged
    wrong += [f"lost: {name}" for name in wanted if not memory[name] and not archive[name]]
    wrong += [f"twice: {name}" for name, count in memory.items() if count > 1]
    wrong += [f"torn: {name}" for name, text in named_entries(project.memory.read_bytes()) if not is_whole(text)]
    return wrong


def test_a_power_cut_at_random_loses_nothing(tmp_path: Path) -> None:
    rnd = random.Random(1)

    wrong = [problem for _ in range(_ROUNDS) for problem in cut_power(tmp_path, rnd.uniform(0.05, 0.4))]

    assert wrong == []


@pytest.mark.torture
@pytest.mark.timeout(1800)
def test_a_hundred_power_cuts(tmp_path: Path) -> None:
    rnd = random.Random(2)

    wrong = [problem for _ in range(100) for problem in cut_power(tmp_path, rnd.uniform(0.02, 0.6))]

    print(f"\n{'power cuts':12}{100:>6}{'wrong':>8}{len(wrong):>6}")
    assert wrong == []
