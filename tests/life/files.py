"""Create oversized memory files, as they grow in projects."""

from __future__ import annotations

from datetime import date, timedelta

TODAY = date.today()  # noqa: DTZ011  the local day, as the product's own
MEMORY_HEADER = "<!-- echo-schema: v1 -->\n\n# Reviewer Memory\n\n"


def learning_text(title: str, layer: str = "inscribed", *, age: int = 1, lines: int = 7) -> str:
    """Return an entry with this number of lines, at least seven."""
    day = TODAY - timedelta(days=age)
    more = "".join(f"  It also says thing {number} about {title}.\n" for number in range(lines - 7))
    return (
        f"### [{day}] Pattern: {title}\n"
        f"- **layer**: {layer}\n"
        "- **source**: rune:review 7be10d44\n"
        "- **confidence**: 0.8\n"
        f"- **evidence**: `src/{title.replace(' ', '_')}.py:1-5`\n"
        f"- **verified**: {day}\n"
        f"- What was learnt about {title}.\n{more}\n"
    )


def observation_text(task: str, *, age: int = 1) -> str:
    """Return an observation of seven lines, including its blank line."""
    day = TODAY - timedelta(days=age)
    return (
        f"## Observations \u2014 Task: {task} ({day})\n"
        "- **layer**: observations\n"
        "**Source**: `rune-review-1/agent`\n"
        "- **Confidence**: LOW (auto-generated, unverified)\n"
        f"- Task completed: {task}\n"
        f"- Context: the agent looked at {task}.\n\n"
    )


def protected_entries(number: int) -> str:
    """Return etched entries, which only the user removes."""
    return "".join(learning_text(f"principle {n}", "etched", age=300) for n in range(number))


def grown_memory() -> str:
    """490 entries on some 3,500 lines: what a few busy months leave where nobody prunes."""
    blocks = [learning_text(f"learning {n}", age=n) for n in range(15)]
    blocks += [learning_text(f"trace {n}", "traced", age=n % 20) for n in range(25)]
    blocks += [observation_text(f"task number {n}", age=n % 50) for n in range(448)]
    return MEMORY_HEADER + protected_entries(2) + "".join(blocks)


def crowded_memory() -> str:
    """Return about 80 entries on 570 lines, which is also too long."""
    blocks = [learning_text(f"learning {n}", age=n) for n in range(12)]
    blocks += [learning_text(f"trace {n}", "traced", age=n) for n in range(6)]
    blocks += [observation_text(f"task number {n}", age=n % 50) for n in range(60)]
    return MEMORY_HEADER + protected_entries(2) + "".join(blocks)
