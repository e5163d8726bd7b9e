"""New names in metadata: one pass, whole words, aware of dates, idempotent, and nothing else changes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echod.memory.document import parse
from echod.memory.entry_matching import NEW_NAMES, rename_document
from echod.memory.model import Document


def document(source: str, evidence: str = "none", day: str = "2026-02-20", body: str = "- a learning") -> Document:
    parsed = parse(
        f"# Memory\n\n### [{day}] Pattern: t\n- **layer**: etched\n- **source**: {source}\n- **confidence**: 0.9\n"
        f"- **evidence**: {evidence}\n{body}\n\n## Mine\n\nrune:review by the Elden Lord\n".encode()
    )
    assert isinstance(parsed, Document)
    return parsed


def renamed(source: str, evidence: str = "none", day: str = "2026-02-20") -> tuple[str, str]:
    after = rename_document("r", document(source, evidence, day), in_new_layout=True).document
    fields = {field.name: field.value for field in after.blocks[0].entry.fields} if after.blocks[0].entry else {}
    return fields["source"], fields["evidence"]


@pytest.mark.parametrize(("old", "new"), NEW_NAMES.items())
def test_every_old_name_is_replaced(old: str, new: str) -> None:
    assert renamed(f"by {old} twice") == (f"by {new} twice", "none")


@pytest.mark.parametrize(
    "source",
    [
        "rune:planner",
        "rune-plan-7",
        "rune-review-7/ward-sentinel",
        "arc-work-2026",
        "my-rune:plan",
        "pattern-weaver and pattern-seer",
        "orphan-finder-2",
        "echo-detector.md",
        "Runebearer-like",
        "spawn the lead",
    ],
)
def test_parts_of_words_and_names_that_never_changed_stay(source: str) -> None:
    assert renamed(source) == (source, "none")


def test_a_name_in_a_source_with_its_team_is_replaced() -> None:
    assert renamed("`rune-review-7/echo-detector`")[0] == "`rune-review-7/mimic-detector`"
    assert renamed("`/rune:review 8c1f` (two sessions)")[0] == "`/rune:appraise 8c1f` (two sessions)"


def test_all_names_change_in_one_pass() -> None:
    """Elden Lord became Tarnished while Tarnished became Ash."""
    assert renamed("Elden Lord and two Runebearers", day="2026-02-12")[0] == "Tarnished and two Ashes"


def test_tarnished_is_left_alone_and_reported_where_its_meaning_is_unknown() -> None:
    early, later = (
        rename_document("r", document("Tarnished", day=day), in_new_layout=True) for day in ("2026-02-12", "2026-03-01")
    )

    assert not early.entries
    assert len(early.ambiguous) == 1
    assert later.ambiguous == ()


@pytest.mark.parametrize("day", ["2026-02-11", "2026-02-12", "2026-02-13", "none"])
def test_tarnished_beside_the_name_that_became_it_is_swapped_only_once(day: str) -> None:
    """In one pass. After two, the Elden Lord would be an Ash."""
    before = document("Elden Lord (lead) and Tarnished", day="2026-02-13" if day == "none" else day)

    once = rename_document("r", before, in_new_layout=True)
    twice = rename_document("r", once.document, in_new_layout=True)

    assert [field.value for field in once.document.blocks[0].entry.fields if field.name == "source"] == [  # type: ignore[union-attr]
        "Tarnished (lead) and Tarnished"
    ]
    assert twice.entries == ()
    assert len(once.ambiguous) == 1


def test_names_of_teams_and_of_state_files_in_back_quotes_stay() -> None:
    for source in ("rune-review-8c1f", ".rune-review-7", "arc-work-1712", "rune-plan-abc", "rune:plans"):
        assert renamed(f"`{source}`")[0] == f"`{source}`"


def test_a_path_in_evidence_keeps_leading_to_its_file() -> None:
    for path in ("`agents/echo-detector.md:3`", "`src/orphan-finder/a.py`", "`config/rune-config.yml:1`"):
        assert renamed("manual", path)[1] == path
    assert renamed("manual", "reported by orphan-finder")[1] == "reported by wraith-finder"


def test_paths_of_the_former_layout_change_only_in_the_new_one() -> None:
    evidence = "`.claude/echoes/team/MEMORY.md:3` and `.claude/echoes-backup` and `x/.claude/arc`"
    before = document("manual", evidence)

    assert renamed("manual", evidence)[1] == evidence.replace(".claude/echoes/", ".rune/echoes/")
    assert rename_document("r", before, in_new_layout=False).document is before


def test_only_metadata_of_entries_changes() -> None:
    before = document("rune:review PR #42", body="- rune:review finds what orphan-finder misses")

    after = rename_document("r", before, in_new_layout=True).document

    assert after.blocks[0].body == before.blocks[0].body
    assert after.blocks[1] == before.blocks[1]
    assert after.render().replace(b"rune:appraise PR", b"rune:review PR") == before.render()


@given(st.lists(st.sampled_from([*NEW_NAMES, *NEW_NAMES.values(), "Tarnished", "/", " ", "-", "`", ":"]), max_size=9))
def test_a_second_run_changes_nothing(words: list[str]) -> None:
    value = " ".join(words) or "none"
    once = rename_document("r", document(value, value), in_new_layout=True)
    twice = rename_document("r", once.document, in_new_layout=True)

    assert twice.entries == ()
    assert twice.document is once.document
