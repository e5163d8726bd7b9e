"""Find a process by its number, and identify it by its start, since numbers are used again.

Loads nothing heavy where /proc exists, because `echod status` uses it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

_HAS_PROC = Path("/proc/self/stat").exists()


@dataclass(frozen=True, slots=True)
class RunningProcess:
    """A process that exists.

    Attributes:
        started: identifies its start, even if the wall clock is changed. Only compared as text.
        suspended: a signal stopped it (SIGSTOP, a terminal, a debugger), so it makes no progress.
    """

    pid: int
    started: str
    suspended: bool


def find_process(pid: int) -> RunningProcess | None:
    """Return the process with this number, or None. A zombie counts as no process."""
    return _find_in_proc(pid) if _HAS_PROC else _find_with_psutil(pid)


def _find_in_proc(pid: int) -> RunningProcess | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # The name in parentheses may itself contain spaces and parentheses: proc_pid_stat(5).
    fields = text.rpartition(")")[2].split()
    state, ticks = fields[0], fields[19]
    if state in "ZXx":
        return None
    return RunningProcess(pid, f"{_boot_id()}:{ticks}", suspended=state in "Tt")


def _boot_id() -> str:
    # Ticks since boot repeat after a reboot, and so do low process numbers.
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
