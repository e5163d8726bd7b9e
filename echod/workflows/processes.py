"""Who is alive. The one place of this room that asks the system about processes; it never sends them anything."""

from __future__ import annotations

import os
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


class Life(StrEnum):
    """Three answers: a process that cannot be judged is neither alive nor gone."""

    ALIVE = "alive"
    GONE = "gone"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Process:
    """What the system says about a process number. `started` is Unix seconds, None if nobody tells."""

    life: Life
    started: float | None = None


class Processes(Protocol):
    """The system's table of processes, or a test's."""

    def look(self, pid: int) -> Process:
        """What is known about process number `pid` now. Never raises."""
        ...


class SystemProcesses:
    """The real table. psutil is loaded only for a process that lives: an idle project never pays for it."""

    def look(self, pid: int) -> Process:
        """What is known about process number `pid` now. EPERM means that it lives."""
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return Process(Life.GONE)
        except PermissionError:
            pass  # another user's, so it exists
        except (OSError, OverflowError):
            return Process(Life.UNKNOWN)
        return _with_start(pid)


def _with_start(pid: int) -> Process:
    import psutil  # noqa: PLC0415  only needed here, and slow to load

    try:
        process = psutil.Process(pid)
        # A zombie answers signals and does nothing any more.
        life = Life.GONE if process.status() == psutil.STATUS_ZOMBIE else Life.ALIVE
        return Process(life, process.create_time())
    except psutil.NoSuchProcess:
        return Process(Life.GONE)
    except (psutil.Error, OSError):
        return Process(Life.ALIVE)
