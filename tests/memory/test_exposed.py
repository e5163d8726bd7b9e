"""Secrets that stand in a file: every place is named by line, entry and kind, and stripping takes them and nothing else."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from echod.memory.exposed_secrets import Place, find_places, strip

PASSWORD = "tr0ub4dor" + "-and-3"
LINE = f"Log in with password={PASSWORD} there."
CLEAN = LINE.replace(PASSWORD, "[REDACTED:password]")


def entry(layer: str, title: str, body: str) -> str:
    return f"## {layer} \u2014 {title} (2026-11-01)\n\n**Source**: `test`\n\n{body}\n\n"


def test_places_are_named_by_line_entry_and_kind() -> None:
    text = f"# Memory\n{LINE}\n\n" + entry("Inscribed", "First", LINE) + entry("Etched", "Second", f"\n{LINE}")

    assert find_places(text.encode()) == (
        Place(2, "password", None, confirm=False),
        Place(8, "password", "First", confirm=False),
        Place(15, "password", "Second", confirm=True),
    )


def test_two_secrets_on_one_line_are_two_places() -> None:
    places = find_places(f"{LINE} {LINE}\n".encode())

    assert [place.line for place in places] == [1, 1]


def test_etched_entries_and_notes_keep_theirs_until_confirmed() -> None:
    kept = entry("Etched", "A", LINE) + entry("Notes", "B", LINE)
    text = (entry("Traced", "C", LINE) + kept).encode()

    assert strip(text, confirmed=False).decode() == entry("Traced", "C", CLEAN) + kept
    assert strip(text, confirmed=True).decode() == text.decode().replace(LINE, CLEAN)


def test_a_title_does_not_give_the_secret_away() -> None:
    (first, *_) = find_places(entry("Inscribed", f"password={PASSWORD}", LINE).encode())

    assert first.entry == "password=[REDACTED:password]"


def test_addresses_in_evidence_count_by_entry() -> None:
    text = (
        "### [2026-11-01] Pattern: Reviews\n- **layer**: inscribed\n- **evidence**: ada@shop.example said so\n- Ask.\n"
    )

    assert [place.kind for place in find_places(text.encode())] == ["email"]


def test_a_file_that_is_no_memory_is_looked_through() -> None:
    assert [place.line for place in find_places(b"\xff\n" + LINE.encode())] == [2]
    conflict = f"<<<<<<< HEAD\n{LINE}\n=======\nb\n>>>>>>> topic\n"
    assert [place.line for place in find_places(conflict.encode())] == [2]


PIECES = st.sampled_from(
    [
        LINE,
        "text",
        "\r\n",
        "\n\n",
        "```",
        entry("Etched", "E", LINE),
        entry("Inscribed", "I", "x"),
        "## Own",
        "\ufeff",
        "> ",
    ]
)


@settings(max_examples=60)
@given(st.lists(PIECES, max_size=12).map("\n".join))
def test_what_was_stripped_holds_no_secret_and_lost_nothing_else(text: str) -> None:
    after = strip(text.encode(), confirmed=True)

    assert find_places(after) == ()
    assert strip(after, confirmed=True) == after
    assert after.decode().replace("[REDACTED:password]", PASSWORD) == text


@settings(max_examples=60)
@given(st.binary(max_size=200))
def test_any_bytes_without_secrets_come_back_unchanged(data: bytes) -> None:
    if not find_places(data):
        assert strip(data, confirmed=True) == data
