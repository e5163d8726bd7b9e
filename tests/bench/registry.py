"""Which topics there are, in the order of the table; each is a module in `topics/` that is named like it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Topic:
    """One thing that is measured.

    Attributes:
        name: its module in `tests.bench.topics`.
        title: its heading in the table.
        seconds: within which it must be over, also on a slow machine; beyond that it counts as not measured.
        timed: it compares elapsed times with a bar, so that nothing else may run beside it. Curves, counts, and the
            processor time and memory of one process bear company.
    """

    name: str
    title: str
    seconds: float
    timed: bool = True


TOPICS = (
    Topic("idle", "The service at rest", 400, timed=False),
    Topic("latency", "From a finding to the memory", 120),
    Topic("documents", "Reading and writing a memory file", 60),
    Topic("merging", "Merging two branches of a memory", 60),
    Topic("consolidation", "Folding findings in", 150),
    Topic("commands", "Commands and hooks, against python -c pass", 240),
    Topic("storm", "A storm of writes", 500, timed=False),
    Topic("commits", "A commit, step by step", 90),
    Topic("curves", "Cost against size", 400, timed=False),
    Topic("walk", "Modules that a reader passes", 90, timed=False),
    Topic("startup", "Start-up against projects", 400, timed=False),
    Topic("queue", "The queue against its history", 90),
    Topic("redaction", "Secrets", 120),
    Topic("sessions", "Conversations", 400, timed=False),
    Topic("quality", "Quality of a pruned memory", 120, timed=False),
    Topic("compression", "Compression", 60, timed=False),
    Topic("search", "Search", 300),
    Topic("evidence", "What became of cited lines", 240),
    Topic("recall", "Entries at the point of action", 240),
    Topic("reports", "A month of reviews", 120, timed=False),
    Topic("auto_memory", "Claude Code's own memory", 120),
    Topic("durability", "Durability", 300, timed=False),
    Topic("long_run", "A hundred days", 500, timed=False),
    Topic("adversarial", "Input made to take long", 120, timed=False),
    Topic("peaks", "Memory at its peak", 400, timed=False),
)
