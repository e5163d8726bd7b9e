"""What is counted in a memory or knowledge file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Count:
    """What is in a file.

    Attributes:
        lines: its lines; None where it cannot be read or is left alone.
        entries: its entries by layer.
        problem: why it is left alone, in a sentence.
        staying: lines that no rule ever takes out, pinned entries aside.
        speaks: whether one of its entries reads like an instruction to agents.
    """

    lines: int | None
    entries: Mapping[str, int] = field(default_factory=dict)
    problem: str | None = None
    staying: int = 0
    speaks: bool = False
