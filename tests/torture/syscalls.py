"""Interfere with single system calls of a running commit by strace: kill before a call, or let it fail.

The child is forked warm and waits. Then strace attaches, and only the calls of the work itself are counted.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path

from tests.torture.service import in_child

CHANGING = (
    "openat", "write", "fsync", "rename", "renameat", "renameat2", "mkdir", "mkdirat", "unlink", "unlinkat", "rmdir",
    "ftruncate", "fchmod", "fchown", "chmod", "linkat", "utimensat", "fcntl",
)  # fmt: skip


@cache
def unavailable_reason() -> str | None:
    """Return why this cannot be done here; None if it can."""
    if shutil.which("strace") is None:
        return "strace is not installed"
    probe = subprocess.run(
        ["strace", "-f", "-e", "trace=fsync", "-e", "inject=fsync:error=EIO", "true"], capture_output=True
    )
    return None if probe.returncode == 0 else "strace may not trace here"


def record_calls(work: Callable[[], object], log: Path) -> list[str]:
    """Return the names of the changing calls that the work makes, in order."""
    status = _run_traced(work, ["-o", str(log), "-e", f"trace={','.join(CHANGING)}"], log.with_suffix(".strace"))
    assert status == 0, log.with_suffix(".strace").read_text()
    lines = [line for line in log.read_text().splitlines() if "(" in line and not line.startswith(("---", "+++"))]
    return [line.partition("(")[0] for line in lines]


def run_with_fault(work: Callable[[], object], call: str, number: int, how: str, scratch: Path) -> int:
    """Run the work with a fault at its `number`-th `call`, and return its exit status (-9 if it was killed).

    Args:
        work: the function to run.
        call: the system call.
        number: the position among these calls, from 1.
        how: `signal=SIGKILL`, `error=ENOSPC`, ...
        scratch: a file for the output of strace.
    """
    inject = f"inject={call}:{how}:when={number}"
    return _run_traced(work, ["-o", "/dev/null", "-e", f"trace={call}", "-e", inject], scratch)


def _run_traced(work: Callable[[], object], options: list[str], log: Path) -> int:
    ready, go = os.pipe()

    def wait_and_work() -> None:
        os.read(ready, 1)
        work()

    child = in_child(wait_and_work)
    with log.open("wb") as out:
        tracer = subprocess.Popen(["strace", *options, "-p", str(child)], stderr=out)
        while b"attached" not in log.read_bytes():
            if tracer.poll() is not None:
                break
    os.write(go, b"g")
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    tracer.wait()
    os.close(ready)
    os.close(go)
    return status
