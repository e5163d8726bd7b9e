"""Findings files composed of everything agents write; every content word is `wordN` and occurs once."""

from __future__ import annotations

from hypothesis import strategies as st

LINES = st.sampled_from(
    [
        "# @",
        "## @ @",
        "### [2026-02-11] Pattern: @ @",
        "### @: @ @",
        "#### @",
        "## Inscribed — @ @ (2026-02-11)",
        "## Observations — Task: @ (2026-02-11)",
        "## @ (Feb 11, 2026) @",
        "**[2026-02-11] @**",
        "**@ @**",
        "**Decision: @**",
        "# Findings",
        "### Why",
        "### Evidence",
        "- **layer**: inscribed",
        "- layer: @",
        "- **source**: @ @",
        "- **confidence**: HIGH (@)",
        "- **confidence**: 0.7",
        "- **evidence**: `@.py:1` — @",
        "- **evidence**:",
        "  - `@.py`",
        "- **verified**: 2026-02-11 @",
        "- **supersedes**: @",
        "**Tags**: `@`, `@`",
        "**Source**: `@` (@)",
        "Source: @",
        "- status: @ @",
        "- **type**: @",
        "- **learning**: @ @",
        "- @ @ @",
        "* @",
        "1. **@**: @",
        "  @ continued",
        "    @ indented",
        "@ @ @.",
        "@: @",
        "| @ | @ |",
        "> @",
        "1. **[2026-02-11] Pattern: @**",
        "   - **layer**: inscribed",
        "   - **evidence**: `@`",
        "- [2026-02-11] Pattern: @ @",
        "- @",
        "  - layer: traced",
        "Learning: @ @",
        "Learning: @",
        "**Scope**: @",
        "**Layer:** traced | **Source:** @",
        "- layer: traced | source: @ | @",
        "<findings>",
        "</findings>",
        "I have completed the review of the code.",
        "```python",
        "```",
        "~~~",
        "<!-- @",
        "@ -->",
        "---",
        "===",
        "",
        "",
        "",
        "Here are my findings:",
        "Let me know if you need anything else.",
    ]
)


@st.composite
def files(draw: st.DrawFn) -> str:
    """Draw a findings file whose every content word is `wordN`, each once."""
    number = 0
    lines = []
    for line in draw(st.lists(LINES, max_size=30)):
        while "@" in line:
            line = line.replace("@", f"word{number}", 1)  # noqa: PLW2901
            number += 1
        lines.append(line)
    return draw(st.sampled_from(["\n", "\r\n"])).join(lines)
