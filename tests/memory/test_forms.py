"""The headings that begin an entry, and the values of the lines below them."""

from __future__ import annotations

from datetime import date
from typing import NamedTuple

import pytest

from echod.memory.document import parse, parse_block
from echod.memory.model import Document, Entry, Form, Layer


class ExpectedEntry(NamedTuple):
    """The values of an entry that readers use."""

    form: Form
    layer: Layer | None
    kind: str | None
    title: str
    day: date | None
    confidence: float | None
    source: str | None
    body: str


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param(
            "## Inscribed \u2014 Review 8c1f (2026-02-16)\n\n**Source**: `rune:review 8c1f` (after the arc)\n"
            "**Confidence**: HIGH (three reviewers agree)\n**Tags**: `a`, `b`\n\n### Review Metrics\n\n- Branch: x\n\n"
            "### Key Learnings\n\n1. **Lead**: text\n\n---\n\n",
            ExpectedEntry(
                Form.LAYER_HEADING, Layer.INSCRIBED, None, "Review 8c1f", date(2026, 2, 16), 0.9, "rune:review 8c1f",
                "### Review Metrics\n\n- Branch: x\n\n### Key Learnings\n\n1. **Lead**: text",
            ),
            id="layer heading",
        ),
        pytest.param(
            "## Observations \u2014 Task: Fix SEC-1: the lock (2026-03-02)\n- **layer**: observations\n"
            "- **source**: `rune-mend-7/fixer`\n- **Confidence**: LOW (auto-generated, unverified)\n"
            "- Task completed: Fix SEC-1: the lock\n- Context: **bold** words\n\n",
            ExpectedEntry(
                Form.OBSERVATION, Layer.OBSERVATIONS, "Task", "Fix SEC-1: the lock", date(2026, 3, 2), 0.4,
                "rune-mend-7/fixer", "- Task completed: Fix SEC-1: the lock\n- Context: **bold** words",
            ),
            id="observation, source in a bullet",
        ),
        pytest.param(
            "## Observations \u2014 Task: scout (2026-03-15)\n- **layer**: observations\n**Source**: `rune-plan-7/scout`\n"
            "- **Confidence**: LOW (auto-generated, unverified)\n- Task completed: scout\n- Context: c\n",
            ExpectedEntry(
                Form.OBSERVATION, Layer.OBSERVATIONS, "Task", "scout", date(2026, 3, 15), 0.4, "rune-plan-7/scout",
                "- Task completed: scout\n- Context: c",
            ),
            id="observation, bare source",
        ),
        pytest.param(
            "### [2026-02-11] Pattern: Unused imports\n- **layer**: inscribed\n- **source**: rune:appraise PR #42\n"
            "- **confidence**: 0.85\n- **evidence**: `src/auth.py:1-5` \u2014 found\n- **verified**: 2026-02-12\n"
            "- **supersedes**: none\n- The learning,\n  which goes on.\n",
            ExpectedEntry(
                Form.BULLET, Layer.INSCRIBED, "Pattern", "Unused imports", date(2026, 2, 11), 0.85,
                "rune:appraise PR #42", "- The learning,\n  which goes on.",
            ),
            id="bullet",
        ),
        pytest.param(
            "## [2026-03-21] Convention: Name the unit\n- **layer**: notes\n- **source**: `learn/cli`\n"
            "- **confidence**: MEDIUM\n- **date**: 2026-03-20\n- **tags**: a, b\n\nSeconds go into the name.\n\n",
            ExpectedEntry(
                Form.WRITER, Layer.NOTES, "Convention", "Name the unit", date(2026, 3, 21), 0.75, "learn/cli",
                "Seconds go into the name.",
            ),
            id="writer, date in brackets",
        ),
        pytest.param(
            "## Name the unit\n- **layer**: inscribed\n- **source**: `learn/cli`\n- **date**: 2026-03-20\n\nSeconds.\n",
            ExpectedEntry(
                Form.WRITER, Layer.INSCRIBED, None, "Name the unit", date(2026, 3, 20), None, "learn/cli", "Seconds.",
            ),
            id="writer, date in a bullet",
        ),
        pytest.param(
            "## Notes \u2014 No mocks (2026-03-21)\n**Source**: user:remember\n- Use the real thing.\n",
            ExpectedEntry(
                Form.NOTES, Layer.NOTES, None, "No mocks", date(2026, 3, 21), None, "user:remember",
                "- Use the real thing.",
            ),
            id="notes",
        ),
        pytest.param(
            "## Etched \u2014 FastAPI: Dependencies (2026-03-11)\n\n**Source**: `doc-pack:fastapi@1.0.0`\n"
            "**Category**: pattern\n\n### Use\n\n```python\n# comment\n## comment\n```\n",
            ExpectedEntry(
                Form.LAYER_HEADING, Layer.ETCHED, None, "FastAPI: Dependencies", date(2026, 3, 11), None,
                "doc-pack:fastapi@1.0.0", "### Use\n\n```python\n# comment\n## comment\n```",
            ),
            id="doc pack",
        ),
        pytest.param(
            "## Inscribed \u2014 Locks (2026-04-01)\n\n**Source**: `elevated:shop@reviewer`\n**Category**: pattern\n"
            "**Domain**: backend\n\nHold them briefly.\n",
            ExpectedEntry(
                Form.LAYER_HEADING, Layer.INSCRIBED, None, "Locks", date(2026, 4, 1), None, "elevated:shop@reviewer",
                "Hold them briefly.",
            ),
            id="elevated",
        ),
        pytest.param(
            "## Assumption Echo \u2014 Task: retry (2026-03-30)\n- **layer**: inscribed\n- **Source**: `work/7`\n"
            "- **Confidence**: MEDIUM (2 of 5 violated)\n- It was not idempotent.\n",
            ExpectedEntry(
                Form.WRITER, Layer.INSCRIBED, None, "Assumption Echo \u2014 Task: retry", date(2026, 3, 30), 0.75, "work/7",
                "- It was not idempotent.",
            ),
            id="assumption echo",
        ),
        pytest.param(
            "### [SA-RC-001] Slow start\n- **layer**: etched\n- **finding_id**: SA-RC-001\n- **recurrence_count**: 4\n"
            "- **first_seen**: 2026-03-01\n- **phase_tags**: work, mend\n- **metrics_snapshot**:\n  - starts: 4\n"
            "  - **confidence**: 0.1\n- Warm the cache.\n",
            ExpectedEntry(
                Form.BULLET, Layer.ETCHED, None, "[SA-RC-001] Slow start", None, None, None, "- Warm the cache.",
            ),
            id="structured, with an id and nested bullets",
        ),
        pytest.param(
            "## Review Recurrence: SEC-001 \u2014 open redirect (2026-04-02)\n- **layer**: inscribed\n- **source**: `learn/x`\n"
            "\nThree times.\n",
            ExpectedEntry(
                Form.WRITER, Layer.INSCRIBED, None, "Review Recurrence: SEC-001 \u2014 open redirect", date(2026, 4, 2), None,
                "learn/x", "Three times.",
            ),
            id="recurrence",
        ),
        pytest.param(
            "## Inscribed \u2014 Task: scout (2026-03-15)\n- **layer**: observations\n**Source**: `rune-plan-7/scout`\n- x\n",
            ExpectedEntry(
                Form.OBSERVATION, Layer.INSCRIBED, "Task", "scout", date(2026, 3, 15), None, "rune-plan-7/scout", "- x",
            ),
            id="promoted: the heading is newer than the bullet",
        ),
        pytest.param(
            "## traced \u2013\u2013 Odd dash (2026-03-15) \u2014 seen again (2026-04-01) ##\n",
            ExpectedEntry(Form.LAYER_HEADING, Layer.TRACED, None, "Odd dash", date(2026, 3, 15), None, None, ""),
            id="lower case, two dashes, text after the date",
        ),
        pytest.param(
            "## Traced - Plain hyphen (2026-02-30)\nx\n",
            ExpectedEntry(Form.LAYER_HEADING, Layer.TRACED, None, "Plain hyphen", None, None, None, "x"),
            id="a date that no calendar has is no date",
        ),
        pytest.param(
            "## Inscribed \u2014 No date\n\n**Source**: `a`\n\nx\n",
            ExpectedEntry(Form.LAYER_HEADING, Layer.INSCRIBED, None, "No date", None, None, "a", "x"),
            id="a layer word without a date, confirmed by a source",
        ),
        pytest.param(
            "## a\n- **layer**: legendary\n- x\n",
            ExpectedEntry(Form.WRITER, None, None, "a", None, None, None, "- x"),
            id="an unknown layer",
        ),
        pytest.param(
            "## a\n\n**Layer:** Traced\n* **Confidence:** `0.3`\n\nx\n",
            ExpectedEntry(Form.WRITER, Layer.TRACED, None, "a", None, 0.3, None, "x"),
            id="colon inside the bold, bare and starred, any case",
        ),
    ],
)  # fmt: skip
def test_every_form_of_real_files_is_read(text: str, said: ExpectedEntry) -> None:
    entry = _entry(text)

    body = text[entry.body.start : entry.body.end]
    day = entry.heading_date
    assert (
        ExpectedEntry(entry.form, entry.layer, entry.kind, entry.title, day, entry.confidence, entry.source, body)
        == said
    )


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(
            "## Consolidated \u2014 Shell (2026-02 to 2026-03)\n\n**Source**: 20+ runs\n\n- x\n", id="hand-made"
        ),
        pytest.param("## Inspection: what I saw\n\nx\n", id="a heading embedded in a report"),
        pytest.param("## Notes-taking habits (2026-01-01)\n\nx\n", id="a word that begins like a layer"),
        pytest.param("## Notes: habits (2026-01-01)\n\nx\n", id="a layer word without a dash"),
        pytest.param("## Observations \u2014 second quarter\n\nx\n", id="neither date nor metadata"),
        pytest.param("## a\n\nProse first.\n\n- **layer**: traced\n", id="a layer bullet below prose"),
        pytest.param("## a\n- layer: traced\n", id="a layer that is not bold"),
        pytest.param("## [2026-01-01] Pattern: a\n- **source**: b\n", id="level 2 in brackets without a layer"),
    ],
)
def test_a_section_that_could_be_the_users_own_is_opaque(text: str) -> None:
    assert parse_block(text).entry is None


@pytest.mark.parametrize(
    ("text", "blocks"),
    [
        pytest.param("## Notes \u2014 a (2026-01-01)\n### [2026-01-02] Section\n\nx\n", 1, id="a date, no metadata"),
        pytest.param("## Notes \u2014 a (2026-01-01)\n### Section\n- **source**: b\n", 1, id="metadata, no date"),
        pytest.param("## Notes \u2014 a (2026-01-01)\n### [2026-01-02] S\n- **status**: done\n", 1, id="not telling"),
        pytest.param("## Notes \u2014 a (2026-01-01)\n### [A-1](b)\n- **source**: c\n", 1, id="a link"),
        pytest.param("## Notes \u2014 a (2026-01-01)\n### [2026-01-02] S\n- **source**: b\n", 2, id="bullet form"),
        pytest.param("## Mine\n\nx\n\n### [2026-01-02] S\n- **source**: b\n", 2, id="bullet form below an opaque one"),
        pytest.param("## a\n- **layer**: traced\n# Part two\n#### deep\n", 1, id="levels 1 and 4"),
    ],
)
def test_a_section_begins_an_entry_only_in_the_bullet_form(text: str, blocks: int) -> None:
    document = parse(text.encode())

    assert isinstance(document, Document)
    assert len(document.blocks) == blocks


def test_a_bold_lead_in_the_learning_is_not_metadata() -> None:
    entry = _entry(
        "### [2026-01-01] Pattern: a\n- **layer**: traced\n- **Retry**: three times\n- **note**: **layer**: etched\n"
        "- **layer**: etched\n"
    )

    assert entry.layer is Layer.TRACED
    assert [field.name for field in entry.fields] == ["layer"]


def test_an_unknown_field_between_known_ones_does_not_hide_them() -> None:
    entry = _entry("### [2026-01-01] Pattern: a\n- **layer**: traced\n- **severity**: P1\n- **source**: b\n- c\n")

    assert entry.source == "b"
    assert [field.name for field in entry.fields] == ["layer", "severity", "source"]


def test_of_repeated_fields_the_first_counts_and_all_are_kept() -> None:
    entry = _entry("## a\n- **layer**: traced\n- **source**: b\n- **source**: c\n- **layer**: etched\n")

    assert (entry.layer, entry.source) == (Layer.TRACED, "b")
    assert [field.value for field in entry.fields] == ["traced", "b", "c", "etched"]


def test_source_category_and_domain_may_follow_the_learning() -> None:
    text = (
        "## Notes \u2014 a (2026-01-01)\n\nb\n\n**Source**: c\n**Category**: pattern\n\n**Category**: debugging\n"
        "**Confidence**: LOW\n### d\n**Domain**: backend\n"
    )
    entry = _entry(text)

    assert entry.source == "c"
    assert entry.confidence is None
    assert [field.name for field in entry.fields] == ["source", "category", "category"]
    assert text[entry.body.start :].startswith("b\n\n**Source**: c")


def test_the_lines_of_a_long_bullet_belong_to_its_value() -> None:
    entry = _entry(
        "### [2026-01-01] Pattern: a\n- **evidence**: `a.py`\n  and\n\n  `b.py`\n- **verified**: 2026-01-02\n- c\n"
    )

    assert entry.evidence == "`a.py`\n  and\n\n  `b.py`"
    assert entry.verified == date(2026, 1, 2)


@pytest.mark.parametrize(
    ("value", "confidence"),
    [
        ("0.85", 0.85), ("1", 1.0), ("0", 0.0), (".5", 0.5), ("`0.9`", 0.9), ("90%", 0.9), ("0.85 (two runs)", 0.85),
        ("0.85, verified", 0.85), ("HIGH", 0.9), ("high-ish", 0.9), ("**Medium**", 0.75), ("LOW (auto)", 0.4),
        ("1.5", None), ("-0.1", None), ("85", None), ("0,85", None), ("3/5", None), ("HIGH/LOW", None),
        ("HIGH | MEDIUM | LOW", None), ("very high", None), ("", None), ("nan", None), ("0.9x", None), ("\u0665", None),
    ],
)  # fmt: skip
def test_a_confidence_is_a_number_or_a_word(value: str, confidence: float | None) -> None:
    assert _entry(f"## a\n- **layer**: traced\n- **confidence**: {value}\n").confidence == confidence


@pytest.mark.parametrize(
    ("value", "day"),
    [
        ("2026-02-11", date(2026, 2, 11)), ("`2026-02-11` (by hand)", date(2026, 2, 11)),
        ("2026-02-11T08:00:00Z", date(2026, 2, 11)), ("2026-02-30", None), ("2026-2-1", None), ("never", None),
        ("2026-02-111", None), ("", None),
    ],
)  # fmt: skip
def test_a_verified_date_is_one_that_the_calendar_has(value: str, day: date | None) -> None:
    assert _entry(f"## a\n- **layer**: traced\n- **verified**: {value}\n").verified == day


@pytest.mark.parametrize(
    ("value", "layer"),
    [
        ("traced", Layer.TRACED), ("`Etched`", Layer.ETCHED), ("OBSERVATIONS (auto)", Layer.OBSERVATIONS),
        ("etched | notes | traced", None), ("etched/notes", None), ("observation", None), ("", None),
    ],
)  # fmt: skip
def test_a_layer_is_one_known_word(value: str, layer: Layer | None) -> None:
    assert _entry(f"## a\n- **layer**: {value}\n").layer == layer


@pytest.mark.parametrize(
    ("value", "title"),
    [
        ("none", None), ("None.", None), ("`none`", None), ("n/a", None), ("\u2014", None), ("", None),
        ("none (first entry)", None), ("Nonesuch", "Nonesuch"), ("None of the retries work", "None of the retries work"),
        ("Old title", "Old title"),
    ],
)  # fmt: skip
def test_supersedes_is_a_title_or_none(value: str, title: str | None) -> None:
    assert _entry(f"## a\n- **layer**: traced\n- **supersedes**: {value}\n").supersedes == title


def _entry(text: str) -> Entry:
    entry = parse_block(text).entry
    assert entry is not None
    return entry
