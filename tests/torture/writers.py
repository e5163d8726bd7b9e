"""Foreign writers that know nothing of echod, split into the steps between which a commit can run."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.torture.entries import entry, with_own_entry

Action = Callable[[], None]
Schedule = dict[int, list[Action]]


@dataclass
class Writer:
    """Adds one entry to a file. `acknowledged` is set by its last step. `version` is its newest."""

    path: Path
    name: str
    acknowledged: bool = False
    version: int = 0
    _content_read: bytes = b""
    _unwritten: bytes = b""
    _fd: int = -1

    def append(self) -> None:
        self.hold()
        self.write_held()

    def read_file(self) -> None:
        self._content_read = self.path.read_bytes() if self.path.exists() else b""

    def replace(self) -> None:
        aside = self.path.with_name(f".aside-{self.name}")
        aside.write_bytes(self._grown())
        aside.rename(self.path)
        self.acknowledged = True

    def revise(self) -> None:
        self.version += 1
        aside = self.path.with_name(f".aside-{self.name}")
        aside.write_bytes(with_own_entry(self._content_read, self.name, self.version))
        aside.rename(self.path)
        self.acknowledged = True

    def close_held(self) -> None:
        os.close(self._fd)

    def truncate(self) -> None:
        self._fd = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        grown = self._grown()
        os.write(self._fd, grown[: len(grown) // 2])
        self._unwritten = grown[len(grown) // 2 :]

    def finish(self) -> None:
        os.write(self._fd, self._unwritten)
        os.close(self._fd)
        self.acknowledged = True

    def hold(self) -> None:
        self._fd = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    def write_held(self) -> None:
        os.write(self._fd, b"\n" + entry(self.name))
        os.close(self._fd)
        self.acknowledged = True

    def _grown(self) -> bytes:
        gap = b"" if not self._content_read or self._content_read.endswith(b"\n") else b"\n"
        return self._content_read + gap + entry(self.name)


KINDS = ("append", "replace", "truncate", "held")


def all_schedules(kind: str, path: Path, steps: int) -> Iterator[tuple[str, Writer, Schedule]]:
    """Yield every way to interleave one writer's steps with the `steps` of a commit.

    A truncation comes at most five steps after the read: no program truncates first and computes afterwards.
    """
    for first in range(steps):
        if kind == "append":
            yield _build_schedule(kind, path, (first,))
            continue
        for second in range(first, min(steps, first + 6) if kind == "truncate" else steps):
            if kind != "truncate":
                yield _build_schedule(kind, path, (first, second))
                continue
            for third in range(second, steps):
                yield _build_schedule(kind, path, (first, second, third))


def random_revisions(path: Path, steps: int, rnd: random.Random) -> tuple[Writer, Schedule]:
    """Return a writer that updates its own entry, and descriptors that keep files busy meanwhile.

    It reads the file again for each version and renames within five steps. No other program changes the file, so only
    the newest version may be there in the end.
    """
    writer = Writer(path, "x1")
    schedule: Schedule = {}
    at = rnd.randrange(steps)
    for _ in range(rnd.randint(2, 4)):
        schedule.setdefault(at, []).append(writer.read_file)
        at += rnd.randint(0, 5)
        schedule.setdefault(at, []).append(writer.revise)
        at += rnd.randint(0, steps // 3)
    for number in range(rnd.randint(0, 3)):
        idler = Writer(path, f"idle{number}")
        opened = rnd.randrange(steps)
        schedule.setdefault(opened, []).append(idler.hold)
        schedule.setdefault(opened + rnd.randint(1, steps), []).append(idler.close_held)
    return writer, schedule


def _build_schedule(kind: str, path: Path, at: tuple[int, ...]) -> tuple[str, Writer, Schedule]:
    writer = Writer(path, "x1")
    schedule: Schedule = {}
    for step, action in zip(at, actions(kind, writer), strict=True):
        schedule.setdefault(step, []).append(action)
    return f"{kind}@{at}", writer, schedule


def actions(kind: str, writer: Writer) -> tuple[Action, ...]:
    """Return the steps of one way of writing."""
    return {
        "append": (writer.append,),
        "replace": (writer.read_file, writer.replace),
        "truncate": (writer.read_file, writer.truncate, writer.finish),
        "held": (writer.hold, writer.write_held),
    }[kind]


def waits_for_lease(action: Action) -> bool:
    """Return whether this action opens the file for writing, and so waits while a lease is held on it."""
    return action.__name__ in {"append", "truncate", "hold"}
