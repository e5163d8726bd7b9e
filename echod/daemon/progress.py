"""When did the work last go on? Told by the steps of commits, asked by the heartbeat: a long job is not a stuck one."""

from __future__ import annotations

from collections.abc import Callable

from echod.store.commit.steps import Step


class Progress:
    """The moment of the last step, on the clock that was given. Told and asked by different threads."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._at = monotonic()

    def __call__(self, step: Step, /) -> None:
        """A commit passes `step` now (`store.steps.Tracer`)."""
        del step
        self._at = self._monotonic()

    @property
    def at(self) -> float:
        """Monotonic seconds of the last step; of the beginning before the first."""
        return self._at
