"""Who is process 4711? Its start tells it from another that got the same number; nothing else is asked.

Kept free of heavy imports, because `echod status` asks too.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class RunningProcess:
    """A process that is there.

    Attributes:
        started: names its start; equal for one process whatever happens to the wall clock, and compared as text only.
        suspended: it was stopped by a signal (SIGSTOP, a terminal, a debugger) and does nothing.
    """

    pid: int
    started: str
    suspended: bool


def find_process(pid: int) -> RunningProcess | None:
    """The process with this number, or None; a zombie is none."""
    return _find_in_proc(pid) if _HAS_PROC else _find_with_psutil(pid)


def _find_in_proc(pid: int) -> RunningProcess | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # The name in parentheses may itself hold spaces and parentheses: proc_pid_stat(5).
    fields = text.rpartition(")")[2].split()
    state, ticks = fields[0], fields[19]
    if state in "ZXx":
        return None
    return RunningProcess(pid, f"{_boot_id()}:{ticks}", suspended=state in "Tt")


def _boot_id() -> str:
    # Ticks since boot come again after a reboot, when low process numbers do too.
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return "boot"


def _find_with_psutil(pid: int) -> RunningProcess | None:
    import psutil  # noqa: PLC0415  (38 ms, and Linux does without)

    try:
        process = psutil.Process(pid)
        status = process.status()
        started = process.create_time()
    except psutil.Error:
        return None
    if status == psutil.STATUS_ZOMBIE:
        return None
    return RunningProcess(
        pid, f"{started:.2f}", suspended=status in {psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP}
    )


_HAS_PROC = Path("/proc/self/stat").exists()
