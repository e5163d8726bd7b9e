"""Which topics there are, in the order of the table; each is a module in `topics/` that is named like it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Topic:
    """One thing that is measured.

    Attributes:
        name: its module in `tests.bench.topics`.
        title: its heading in the table.
        seconds: within which it must be over; beyond that it counts as not measured.
        timed: it measures time, so that nothing else may run beside it.
    """

    name: str
    title: str
    seconds: float
    timed: bool = True


TOPICS = (
    Topic("idle", "The service at rest", 150),
    Topic("latency", "From a finding to the memory", 90),
    Topic("documents", "Reading and writing a memory file", 30),
    Topic("consolidation", "Folding findings in", 90),
    Topic("commands", "Commands and hooks, against python -c pass", 120),
    Topic("storm", "A storm of writes", 240),
    Topic("commits", "A commit, step by step", 60),
    Topic("curves", "Cost against size", 120),
    Topic("startup", "Start-up against projects", 150),
    Topic("queue", "The queue against its history", 60),
    Topic("redaction", "Secrets", 60),
    Topic("compression", "Compression", 60, timed=False),
    Topic("durability", "Durability", 240, timed=False),
    Topic("long_run", "A hundred days", 300, timed=False),
    Topic("peaks", "Memory at its peak", 120, timed=False),
)
