"""All earlier text exists somewhere afterwards, or the change set is refused and names the block."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echod.memory.conservation import (
    FileChange,
    Violation,
    ViolationKind,
    find_missing_findings,
    find_violations,
    find_whole_lines,
    is_redaction_of,
)
from echod.memory.document import parse
from echod.memory.model import Document
from echod.memory.redact import redact

HEAD = "# Memory\n\n"
TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


def entry(title: str, body: str = "Learned.", layer: str = "Inscribed") -> str:
    return f"## {layer} \u2014 {title} (2026-01-01)\n\n**Source**: `test`\n**Confidence**: HIGH\n\n{body}\n\n"


A, B = entry("A"), entry("B", "Something else.")
ETCHED = entry("E", layer="Etched")
OWN = "## My own section\n\nText of a person.\n\n"


def document(*blocks: str, head: str = HEAD) -> Document:
    read = parse((head + "".join(blocks)).encode())
    assert isinstance(read, Document)
    return read


def check(
    before: list[str], after: list[str], archived: tuple[str, ...] = (), *, user_requested: bool = False
) -> tuple[Violation, ...]:
    change = FileChange(document(*before), document(*after))
    return find_violations(
        [change], archived, redacted_forms=lambda text: [redact(text).text], user_requested=user_requested
    )


@pytest.mark.parametrize(
    ("before", "after", "archived"),
    [
        pytest.param([A, B], [A, B], (), id="unchanged"),
        pytest.param([A, B], [B, A], (), id="moved"),
        pytest.param([A, B], [B], (A,), id="archived"),
        pytest.param([A, B], [B], (f"> job 7\n\n{A}\n---\n",), id="archived among other text"),
        pytest.param([A, B], [A.replace("HIGH", "LOW"), B], (), id="metadata edited"),
        pytest.param([A, B], [A.replace("Inscribed", "Traced"), B], (), id="layer changed"),
        pytest.param([A, A, B], [A, B], (), id="an exact repeat collapsed"),
        pytest.param([A, ETCHED, OWN], [ETCHED, OWN], (A,), id="protected blocks untouched"),
        pytest.param(
            [A, entry("S", f"Use {TOKEN}.")], [A, redact(entry("S", f"Use {TOKEN}.")).text], (), id="redacted"
        ),
        pytest.param(
            [entry("S", f"Use {TOKEN}."), A], [A], (redact(entry("S", f"Use {TOKEN}.")).text,), id="redacted away"
        ),
        pytest.param([A.rstrip()], [A, B], (), id="a final newline added"),
    ],
)
def test_these_keep_everything(before: list[str], after: list[str], archived: tuple[str, ...]) -> None:
    assert check(before, after, archived) == ()


@pytest.mark.parametrize(
    ("before", "after", "broken"),
    [
        pytest.param([A, B], [B], ViolationKind.LOST, id="an entry dropped"),
        pytest.param([A, B], [entry("A", "Shorter."), B], ViolationKind.LOST, id="a learning rewritten"),
        pytest.param([A, OWN], [A], ViolationKind.LOST, id="a person's section dropped"),
    ],
)
def test_these_lose_something(before: list[str], after: list[str], broken: ViolationKind) -> None:
    assert check(before, after)[0].kind is broken
    assert check(before, after, user_requested=True)[0].kind is broken


def test_the_refusal_names_the_block() -> None:
    assert check([A, B], [B])[0].heading == "## Inscribed \u2014 A (2026-01-01)"


@pytest.mark.parametrize(
    "block", [ETCHED, OWN, entry("N", layer="Notes"), entry("U", layer="Etched").replace("HIGH", "LOW")]
)
def test_protected_blocks_change_only_on_the_users_request(block: str) -> None:
    assert check([A, block], [A], (block,)) == (Violation(ViolationKind.PROTECTED_CHANGED, block.partition("\n")[0]),)
    assert check([A, block], [A], (block,), user_requested=True) == ()


def test_a_changed_confidence_of_an_etched_entry_is_a_violation() -> None:
    assert [v.kind for v in check([ETCHED], [ETCHED.replace("HIGH", "LOW")])] == [ViolationKind.PROTECTED_CHANGED]


def test_a_file_becomes_empty_only_on_the_users_request() -> None:
    change = FileChange(document(A), document(head=""))

    def found(*, asked: bool) -> list[ViolationKind]:
        kept = (A + HEAD,)
        return [v.kind for v in find_violations([change], kept, redacted_forms=lambda _text: [], user_requested=asked)]

    assert found(asked=False) == [ViolationKind.EMPTIED]
    assert found(asked=True) == []


def test_text_before_the_first_heading_is_not_lost() -> None:
    change = FileChange(document(A, head="# Memory\n\nWritten by hand.\n\n"), document(A))

    assert [v.kind for v in find_violations([change], (), redacted_forms=lambda _text: [], user_requested=False)] == [
        ViolationKind.LOST
    ]


def test_findings_are_in_their_archived_file() -> None:
    blocks = document(A, B).blocks

    assert find_missing_findings(blocks, HEAD + A + B, redacted_forms=lambda _text: []) == ()
    assert [v.heading for v in find_missing_findings(blocks, HEAD + A, redacted_forms=lambda _text: [])] == [
        "## Inscribed \u2014 B (2026-01-01)"
    ]


@pytest.mark.parametrize(
    ("kept", "same"),
    [
        ("one two three", True),
        ("one [REDACTED:token] three", True),
        ("[REDACTED:a] [REDACTED:b] three", True),
        ("one [REDACTED:token] four", False),
        ("one two", False),
        ("[REDACTED:token] three and more", False),
        ("one two [REDACTED:x] two three", False),
    ],
)
def test_a_redaction_replaces_spans_and_nothing_else(kept: str, same: bool) -> None:
    assert is_redaction_of(kept, "one two three") is same


LINES = st.lists(st.sampled_from(["## a", "## a  ", "## ab", "b", "", "b c"]), max_size=6)


@given(LINES, st.frozensets(LINES.map("\n".join).map(str.rstrip).filter(bool), max_size=6))
def test_texts_are_found_as_whole_lines(lines: list[str], wanted: frozenset[str]) -> None:
    spans = [lines[start:end] for end in range(len(lines) + 1) for start in range(end)]

    assert find_whole_lines("\n".join(lines), wanted) == wanted & {"\n".join(span).rstrip() for span in spans}


@pytest.mark.parametrize("quoted", [f"quoted: {A}", A.rstrip() + " and more\n"])
def test_an_entry_that_an_archive_has_only_as_parts_of_lines_is_lost(quoted: str) -> None:
    assert [v.kind for v in check([A, B], [B], (quoted,))] == [ViolationKind.LOST]
