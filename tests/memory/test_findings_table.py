"""Findings in unusual forms. Each row: the agent's text, and the findings that are read from it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date

import pytest

from echod.memory.findings import Finding, read_findings
from echod.memory.model import Layer, Unreadable, UnreadableKind

FILE_DATE = date(2026, 3, 1)
FEB_11 = date(2026, 2, 11)
AGENT = "pattern-scout"


@dataclass(frozen=True, slots=True)
class Want:
    """The expectations of a row about one finding; omitted ones must be the default."""

    title: str
    text: str = ""
    kind: str | None = None
    day: date = FILE_DATE
    layer: Layer = Layer.INSCRIBED
    claimed: Layer | None = None
    confidence: float = 0.5
    source: str = AGENT
    evidence: str | None = None
    verified: date = FILE_DATE
    supersedes: str | None = None
    fields: tuple[tuple[str, str], ...] = ()


def seen(finding: Finding) -> Want:
    return Want(
        finding.title,
        finding.text,
        finding.kind,
        finding.heading_date,
        finding.layer,
        finding.claimed_layer,
        finding.confidence,
        finding.source,
        finding.evidence,
        finding.verified,
        finding.supersedes,
        finding.fields,
    )


def read(text: str) -> list[Want]:
    found = read_findings(text.encode(), agent=AGENT, file_date=FILE_DATE)
    assert not isinstance(found, Unreadable), found.reason
    return [seen(finding) for finding in found]


WHOLE = Want(
    "Close the pool",
    "Close the pool in teardown.",
    "Pattern",
    FEB_11,
    Layer.INSCRIBED,
    None,
    0.85,
    "rune:review PR #7",
    "`src/db.py:3`",
    FEB_11,
)
SHORT = Want("Close the pool", "Close it in teardown.", "Pattern", FEB_11)

CANONICAL = """### [2026-02-11] Pattern: Close the pool
- **layer**: inscribed
- **source**: rune:review PR #7
- **confidence**: 0.85
- **evidence**: `src/db.py:3`
- **verified**: 2026-02-11
- **supersedes**: none
- Close the pool in teardown.
"""

TABLE: dict[str, tuple[str, list[Want]]] = {
    "canonical": (CANONICAL, [WHOLE]),
    "crlf": (CANONICAL.replace("\n", "\r\n"), [WHOLE]),
    "lone carriage returns": (CANONICAL.replace("\n", "\r"), [WHOLE]),
    "byte order mark": ("\ufeff" + CANONICAL, [WHOLE]),
    "no final newline": (CANONICAL.rstrip(), [WHOLE]),
    "level one": (CANONICAL.replace("###", "#"), [WHOLE]),
    "level two": (CANONICAL.replace("###", "##"), [WHOLE]),
    "level six": (CANONICAL.replace("###", "######"), [WHOLE]),
    "star bullets": (CANONICAL.replace("- **", "* **").replace("- Close", "* Close"), [WHOLE]),
    "plus bullets": (CANONICAL.replace("- **", "+ **").replace("- Close", "+ Close"), [WHOLE]),
    "real bullets": (CANONICAL.replace("- **", "• **").replace("- Close", "• Close"), [WHOLE]),
    "not bold": (CANONICAL.replace("**", ""), [WHOLE]),
    "single stars": (CANONICAL.replace("**", "*"), [WHOLE]),
    "underscores": (CANONICAL.replace("**", "__"), [WHOLE]),
    "colon inside the bold": (CANONICAL.replace("**:", ":**"), [WHOLE]),
    "all bold": (
        CANONICAL.replace("- **confidence**: 0.85", "- **confidence: 0.85**").replace(
            "**layer**: inscribed", "**layer: inscribed**"
        ),
        [WHOLE],
    ),
    "no bullets at all": (CANONICAL.replace("- ", ""), [WHOLE]),
    "indented bullets": (CANONICAL.replace("- ", "  - "), [WHOLE]),
    "upper case": (
        CANONICAL.replace("layer**: inscribed", "LAYER**: INSCRIBED").replace("confidence", "Confidence"),
        [WHOLE],
    ),
    "blank lines between": (CANONICAL.replace("\n", "\n\n"), [WHOLE]),
    "no space after the marks": (CANONICAL.replace("### [", "###["), [WHOLE]),
    "closing marks": (CANONICAL.replace("pool\n- **layer", "pool ###\n- **layer"), [WHOLE]),
    "non-breaking spaces": (CANONICAL.replace("### [", "###\u00a0[").replace("**: ", "**:\u00a0"), [WHOLE]),
    "zero-width in front": (CANONICAL.replace("###", "\u200b###").replace("- **", "\u200b- **"), [WHOLE]),
    "full-width colon": (CANONICAL.replace("**:", "**\uff1a"), [WHOLE]),
    "metadata below the text": (
        """### [2026-02-11] Pattern: Close the pool

Close the pool in teardown.

- layer: inscribed
- source: rune:review PR #7
- confidence: 0.85
- evidence: `src/db.py:3`
- verified: 2026-02-11
""",
        [WHOLE],
    ),
    "label for the learning": (
        CANONICAL.replace("- Close the pool in", "- **learning**: Close the pool in"),
        [WHOLE],
    ),
    "percentage": (CANONICAL.replace("0.85", "85%"), [WHOLE]),
    "decimal comma": (CANONICAL.replace("0.85", "0,85"), [WHOLE]),
    "fraction": (CANONICAL.replace("0.85", "17/20"), [WHOLE]),
    "quoted layer": (CANONICAL.replace(": inscribed", ": \u201cinscribed\u201d"), [WHOLE]),
    "iso with time": (CANONICAL.replace("**: 2026-02-11", "**: 2026-02-11T09:30:00Z"), [WHOLE]),
    "chatter around": (
        f"Sure! Here are my findings from the review:\n\n{CANONICAL}\nLet me know if you have any questions!\n",
        [WHOLE],
    ),
    "in a markdown fence": (f"Here are my findings:\n\n```markdown\n{CANONICAL}```\n", [WHOLE]),
    "below a title": (f"# Findings\n\n{CANONICAL}", [WHOLE]),
    "below the agent's title": (f"# Pattern Scout Findings (2026-02-20)\n\n{CANONICAL}", [WHOLE]),
    "schema comment": (f"<!-- echo-schema: v1 -->\n# Reviewer findings\n\n{CANONICAL}", [WHOLE]),
    "between rules": (f"---\n\n{CANONICAL}\n---\n", [WHOLE]),
    # Dates
    "slashes": ("### [2026/02/11] Pattern: Close the pool\nClose it in teardown.\n", [SHORT]),
    "dots": ("### 2026.02.11 Pattern: Close the pool\nClose it in teardown.\n", [SHORT]),
    "compact": ("### [20260211] Pattern: Close the pool\nClose it in teardown.\n", [SHORT]),
    "day first": ("### [11 Feb 2026] Pattern: Close the pool\nClose it in teardown.\n", [SHORT]),
    "month first": ("### Pattern: Close the pool (Feb 11, 2026)\nClose it in teardown.\n", [SHORT]),
    "ordinal day": ("### Pattern: Close the pool - February 11th, 2026\nClose it in teardown.\n", [SHORT]),
    "without brackets": ("### 2026-02-11 Pattern: Close the pool\nClose it in teardown.\n", [SHORT]),
    "without brackets, dash": ("### 2026-02-11 - Pattern: Close the pool\nClose it in teardown.\n", [SHORT]),
    "in parentheses": ("## Pattern: Close the pool (2026-02-11)\nClose it in teardown.\n", [SHORT]),
    "date field": ("## Pattern: Close the pool\n- date: 2026-02-11\n\nClose it in teardown.\n", [SHORT]),
    "bold heading": ("**[2026-02-11] Pattern: Close the pool**\n\nClose it in teardown.\n", [SHORT]),
    "setext heading": ("[2026-02-11] Pattern: Close the pool\n----\nClose it in teardown.\n", [SHORT]),
    "emphasised heading": ("### **[2026-02-11] Pattern: Close the pool**\nClose it in teardown.\n", [SHORT]),
    "numbered heading": ("### 1. [2026-02-11] Pattern: Close the pool\nClose it in teardown.\n", [SHORT]),
    "finding number": ("### Finding 3: [2026-02-11] Pattern: Close the pool\nClose it in teardown.\n", [SHORT]),
    "bracketed type": ("### [2026-02-11] [Pattern] Close the pool\nClose it in teardown.\n", [SHORT]),
    "the title's date holds below": (
        "# Findings 2026-02-11\n\n## Pattern: Close the pool\nClose it in teardown.\n",
        [SHORT],
    ),
    "ambiguous date stays in the title": (
        "## Outage of 02/11/2026\nThe pool ran dry.\n",
        [Want("Outage of 02/11/2026", "The pool ran dry.")],
    ),
    "impossible date stays in the title": (
        "## [2026-02-30] Leap\nText.\n",
        [Want("[2026-02-30] Leap", "Text.")],
    ),
    # Layers
    "layer in the heading": (
        "## Inscribed \u2014 Close the pool (2026-02-11)\n\n**Source**: `rune:review`\n**Confidence**: HIGH\n\nDo it.\n",
        [Want("Close the pool", "Do it.", None, FEB_11, Layer.INSCRIBED, None, 0.9, "`rune:review`")],
    ),
    "etched is a claim": (
        "## Etched \u2014 Postgres only (2026-02-11)\nNo other database.\n",
        [Want("Postgres only", "No other database.", None, FEB_11, Layer.INSCRIBED, Layer.ETCHED)],
    ),
    "notes is a claim": (
        "### Keep it\n- layer: notes\n- Text.\n",
        [Want("Keep it", "Text.", layer=Layer.INSCRIBED, claimed=Layer.NOTES)],
    ),
    "a heading about notes is not a claim": (
        "## Notes - how the cache works\nIt works.\n",
        [Want("Notes - how the cache works", "It works.")],
    ),
    "observation": (
        "## Observations \u2014 Task: Fix login (2026-02-11)\n- **layer**: observations\n- Done.\n",
        [Want("Fix login", "Done.", "Task", FEB_11, Layer.OBSERVATIONS)],
    ),
    "grouped by layer": (
        "# Inscribed\n## One\nFirst.\n# Traced\n## Two\nSecond.\n",
        [Want("One", "First."), Want("Two", "Second.", layer=Layer.TRACED)],
    ),
    "unknown layer is kept as a note": (
        "### Keep it\n- layer: permanent\n- Text.\n",
        [Want("Keep it", "Text.", fields=(("layer_note", "permanent"),))],
    ),
    "a template left as it was": (
        "### Keep it\n- layer: etched | inscribed | traced\n- Text.\n",
        [Want("Keep it", "Text.", fields=(("layer_note", "etched | inscribed | traced"),))],
    ),
    # Values
    "confidence with prose": (
        "### Keep it\n**Confidence**: HIGH (5 agents)\n\nText.\n",
        [Want("Keep it", "Text.", confidence=0.9, fields=(("confidence_note", "HIGH (5 agents)"),))],
    ),
    "confidence out of range": (
        "### Keep it\n- confidence: 7\n- Text.\n",
        [Want("Keep it", "Text.", fields=(("confidence_note", "7"),))],
    ),
    "verified in the future": (
        "### Keep it\n- verified: 2031-01-01\n- Text.\n",
        [Want("Keep it", "Text.")],
    ),
    "evidence in a list": (
        "### Keep it\n- **evidence**:\n  - `a.py:1` \u2014 one\n  - `b.py:2` \u2014 two\n- Text.\n",
        [Want("Keep it", "Text.", evidence="`a.py:1` \u2014 one; `b.py:2` \u2014 two")],
    ),
    "evidence wraps": (
        "### Keep it\n- **evidence**: `a.py:1`,\n  `b.py:2`\n- Text.\n",
        [Want("Keep it", "Text.", evidence="`a.py:1`, `b.py:2`")],
    ),
    "evidence heads a list": (
        "### Keep it\nText.\n\n**Evidence:**\n- `a.py:1`\n- `b.py:2`\n",
        [Want("Keep it", "Text.", evidence="`a.py:1`; `b.py:2`")],
    ),
    "evidence twice": (
        "### Keep it\n- evidence: `a.py`\n- evidence: `b.py`\n- Text.\n",
        [Want("Keep it", "Text.", evidence="`a.py`; `b.py`")],
    ),
    "supersedes": (
        "### Keep it\n- supersedes: Old pool rule\n- Text.\n",
        [Want("Keep it", "Text.", supersedes="Old pool rule")],
    ),
    "tags and category": (
        "### Keep it\n- layer: traced\n- tags: a, b\n- category: pattern\n- Text.\n",
        [Want("Keep it", "Text.", layer=Layer.TRACED, fields=(("tags", "a, b"), ("category", "pattern")))],
    ),
    "a sentence after a known word is text": (
        "### Keep it\n- Close the pool.\n- Status: the endpoint answers 200 even where the body says that it failed.\n",
        [
            Want(
                "Keep it",
                "- Close the pool.\n- Status: the endpoint answers 200 even where the body says that it failed.",
            )
        ],
    ),
    "a bold lead is text": (
        "### Keep it\n- **Retry**: three times.\n",
        [Want("Keep it", "**Retry**: three times.")],
    ),
    "front matter": (
        "---\nlayer: inscribed\ntags:\n  - a\n  - b\nmodel: opus\n---\n## Keep it\nText.\n",
        [Want("Keep it", "Text.", layer=Layer.INSCRIBED, fields=(("tags", "a, b"), ("model", "opus")))],
    ),
    "metadata of the whole file": (
        "# Findings\n**Source**: rune:audit\n**Date**: 2026-02-11\n\n## One\nFirst.\n\n## Two\nSecond.\n",
        [
            Want("One", "First.", source="rune:audit", day=FEB_11),
            Want("Two", "Second.", source="rune:audit", day=FEB_11),
        ],
    ),
    # Structure
    "several": (
        "## One\nFirst.\n\n## Two\nSecond.\n\n## Three\nThird.\n",
        [Want("One", "First."), Want("Two", "Second."), Want("Three", "Third.")],
    ),
    "a title over weak headings": (
        "# Findings\n\n### One\nFirst.\n\n### Two\nSecond.\n",
        [Want("One", "First."), Want("Two", "Second.")],
    ),
    "a title with text of its own": (
        "# Findings\n\nThe pool runs dry.\n\n## One\nFirst.\n",
        [Want("The pool runs dry.", "The pool runs dry."), Want("One", "First.")],
    ),
    "a title that says something becomes the topic": (
        "# Payment service\n\n## One\nFirst.\n\n## Two\nSecond.\n",
        [
            Want("One", "First.", fields=(("topic", "Payment service"),)),
            Want("Two", "Second.", fields=(("topic", "Payment service"),)),
        ],
    ),
    "parts of one learning": (
        "## Close the pool\n\n### Why\nIt leaks.\n\n### How\nIn teardown.\n",
        [Want("Close the pool", "### Why\nIt leaks.\n\n### How\nIn teardown.")],
    ),
    "sections below an entry heading are its own": (
        "## Inscribed \u2014 Review 9 (2026-02-11)\n### Review Metrics\n- Branch: x\n### Key Learnings\n1. **A**: b\n",
        [
            Want(
                "Review 9",
                "### Review Metrics\n- Branch: x\n### Key Learnings\n1. **A**: b",
                None,
                FEB_11,
                Layer.INSCRIBED,
            )
        ],
    ),
    "no heading": ("The pool leaks.\nClose it.\n", [Want("The pool leaks.", "The pool leaks.\nClose it.")]),
    "no heading, with metadata": (
        "- layer: inscribed\n- evidence: `a.py`\n- The pool leaks.\n",
        [Want("The pool leaks.", "The pool leaks.", layer=Layer.INSCRIBED, evidence="`a.py`")],
    ),
    "no heading, long first line": (
        "The pool " + "leaks badly " * 10 + "\n",
        [
            Want(
                "The pool leaks badly leaks badly leaks badly leaks badly leaks badly leaks\u2026",
                ("The pool " + "leaks badly " * 10).rstrip(),
            )
        ],
    ),
    "bullets below a title": (
        "# Findings\n- The pool leaks.\n- Close it.\n",
        [Want("The pool leaks.", "- The pool leaks.\n- Close it.")],
    ),
    "only a heading": ("## Always close the pool\n", [Want("Always close the pool")]),
    "a comment that names the agent": ("<!-- agent: ward -->\n\n## One\nFirst.\n", [Want("One", "First.")]),
    "nothing but a comment that names the agent": ("<!-- agent: ward -->\n", []),
    "a comment that says more": (
        "## One\n<!-- agent: wards must not share the pool -->\n",
        [Want("One", "<!-- agent: wards must not share the pool -->")],
    ),
    "a comment in an example": (
        "## One\n```html\n<!-- agent: ward -->\n```\n",
        [Want("One", "```html\n<!-- agent: ward -->\n```")],
    ),
    "no next steps": ("## One\nFirst.\n\n## Next steps\nNone.\n", [Want("One", "First.")]),
    "no open questions": ("## One\nFirst.\n\n## Open questions\n\n- N/A\n", [Want("One", "First.")]),
    "next steps": (
        "## One\nFirst.\n\n## Next steps\nNone of the pools is closed.\n",
        [Want("One", "First."), Want("Next steps", "None of the pools is closed.")],
    ),
    "nothing as the answer": ("## Default of the timeout\nNone.\n", [Want("Default of the timeout", "None.")]),
    "empty": ("", []),
    "only white space": (" \n\t\n\u00a0\n", []),
    "only a title": ("# Findings\n", []),
    "only chatter": ("Here are my findings:\n\nThat's all. Let me know if you need anything else.\n", []),
    "a list of learnings": (
        """I've completed the review of the payment module. Here are the findings:

1. **[2026-02-11] Pattern: Close the pool**
   - layer: traced
   - Close it in teardown.

2. **Never share it**
   - evidence: `src/db.py`
   - Not between threads.
""",
        [replace(SHORT, layer=Layer.TRACED), Want("Never share it", "Not between threads.", evidence="`src/db.py`")],
    ),
    "a list of titles": (
        "- [2026-02-11] Pattern: Close the pool\n- [2026-02-11] Decision: Use one pool\n",
        [Want("Close the pool", "", "Pattern", FEB_11), Want("Use one pool", "", "Decision", FEB_11)],
    ),
    "a list below a learning is its text": (
        "### One\n- layer: traced\n- First:\n  - layer by layer\n- then [2026-02-11] the rest\n",
        [Want("One", "- First:\n  - layer by layer\n- then [2026-02-11] the rest", layer=Layer.TRACED)],
    ),
    "the same label again and again": (
        "Learning: Close the pool.\nEvidence: `a.py`\n\nLearning: Warm the cache.\nConfidence: high\n",
        [
            Want("Close the pool.", "Close the pool.", evidence="`a.py`"),
            Want("Warm the cache.", "Warm the cache.", confidence=0.9),
        ],
    ),
    "groups between rules": (
        "- layer: inscribed\n- Close the pool.\n\n---\n\n- layer: traced\n- Warm the cache.\n",
        [
            Want("Close the pool.", "Close the pool.", layer=Layer.INSCRIBED),
            Want("Warm the cache.", "Warm the cache.", layer=Layer.TRACED),
        ],
    ),
    "several values on one line": (
        "### Keep it\n**Layer:** Inscribed | **Confidence:** 0.8 | **Source:** rune:review\n\nText.\n",
        [Want("Keep it", "Text.", layer=Layer.INSCRIBED, confidence=0.8, source="rune:review")],
    ),
    "tags around it all": (f"<findings>\n{CANONICAL}</findings>\n", [WHOLE]),
    "a report": (
        """# Pattern Scout \u2014 Findings

**Date**: 2026-02-11
**Scope**: PR #42

## Findings

### 1. Close the pool

**File**: `src/db.py:3`
**Confidence**: 90%

It leaks.
""",
        [
            Want(
                "Close the pool",
                "It leaks.",
                day=FEB_11,
                confidence=0.9,
                evidence="`src/db.py:3`",
                fields=(("scope", "PR #42"),),
            )
        ],
    ),
    "what a group says and a learning overrules": (
        """# Findings
**Source**: rune:audit
**Date**: 2026-02-20

## One
- source: CI log
- date: 2026-02-11
- First.
""",
        [Want("One", "First.", day=FEB_11, source="CI log", fields=(("source_note", "rune:audit"),))],
    ),
    "metadata over nothing": (
        "# Findings\n- tags: a, b\n\n## Summary\n",
        [Want("Untitled", "", fields=(("tags", "a, b"),))],
    ),
    "a word of the agent's name is a title": ("## Pattern\nText.\n", [Want("Pattern", "Text.")]),
    # Code
    "headings in code": (
        "### Run it\n```sh\n# not a heading\n## [2026-02-11] Pattern: neither\nmake\n```\n",
        [Want("Run it", "```sh\n# not a heading\n## [2026-02-11] Pattern: neither\nmake\n```")],
    ),
    "code in a bullet": (
        "### Run it\n- Like this:\n  ```sh\n# not a heading\n  make\n  ```\n",
        [Want("Run it", "Like this:\n```sh\n# not a heading\nmake\n```")],
    ),
    "a fence never closed": (
        "### One\n```sh\n# not a heading\nmake\n\n### [2026-02-11] Pattern: Close the pool\nClose it in teardown.\n",
        [Want("One", "```sh\n# not a heading\nmake"), SHORT],
    ),
    "headings in a comment": (
        "### One\n<!--\n## Pattern: hidden\n-->\nText.\n",
        [Want("One", "<!--\n## Pattern: hidden\n-->\nText.")],
    ),
    "headings in a list": (
        "### One\n- First.\n\n  ## Pattern: inside\n\n  More.\n",
        [Want("One", "First.\n\n## Pattern: inside\n\nMore.")],
    ),
    "a rule below a sentence is no heading": (
        "### One\n\nFirst.\n---\n\n### Two\n\nSecond.\n",
        [Want("One", "First."), Want("Two", "Second.")],
    ),
    "chatter with a fact stays": (
        "Let me know if `pool.close()` is wrong.\n\n### One\nFirst.\n",
        [
            Want("Let me know if `pool.close()` is wrong.", "Let me know if `pool.close()` is wrong."),
            Want("One", "First."),
        ],
    ),
    "a remark after the findings stays": (
        "### One\nFirst.\n\nGreat care is needed with the pool.\n",
        [Want("One", "First.\n\nGreat care is needed with the pool.")],
    ),
}


@pytest.mark.parametrize(("text", "wanted"), TABLE.values(), ids=TABLE.keys())
def test_an_agents_text_gives_these_findings(text: str, wanted: list[Want]) -> None:
    assert read(text) == wanted


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (b"## One\n\xff\xfe\n", UnreadableKind.INVALID_UTF8),
        (b"## One\n<<<<<<< ours\na\n=======\nb\n>>>>>>> theirs\n", UnreadableKind.CONFLICT_MARKERS),
        (b"<!-- echo-schema: v2 -->\n## One\n", UnreadableKind.FUTURE_SCHEMA),
        (b"x" * (10 * 1024 * 1024 + 1), UnreadableKind.OVER_SIZE),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_an_unreadable_file_is_not_an_empty_one(data: bytes, fault: UnreadableKind) -> None:
    found = read_findings(data, agent=AGENT, file_date=FILE_DATE)

    assert isinstance(found, Unreadable)
    assert found.kind is fault
