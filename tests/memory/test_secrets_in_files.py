"""Secrets in a file: every location has line, entry and kind, and stripping removes them and nothing else."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from echod.memory.redact import SecretLocation, locate_secrets, strip_secrets

PASSWORD = "tr0ub4dor" + "-and-3"
LINE = f"Log in with password={PASSWORD} there."
CLEAN = LINE.replace(PASSWORD, "[REDACTED:password]")


def entry(layer: str, title: str, body: str) -> str:
    return f"## {layer} \u2014 {title} (2026-11-01)\n\n**Source**: `test`\n\n{body}\n\n"


def test_locations_have_line_entry_and_kind() -> None:
    text = f"# Memory\n{LINE}\n\n" + entry("Inscribed", "First", LINE) + entry("Etched", "Second", f"\n{LINE}")

    assert locate_secrets(text.encode()) == (
        SecretLocation(2, "password", None, needs_confirmation=False),
        SecretLocation(8, "password", "First", needs_confirmation=False),
        SecretLocation(15, "password", "Second", needs_confirmation=True),
    )


def test_two_secrets_on_one_line_are_two_locations() -> None:
    places = locate_secrets(f"{LINE} {LINE}\n".encode())

    assert [place.line for place in places] == [1, 1]


def test_etched_entries_and_notes_keep_their_secrets_until_confirmed() -> None:
    protected = entry("Etched", "A", LINE) + entry("Notes", "B", LINE)
    text = (entry("Traced", "C", LINE) + protected).encode()

    assert strip_secrets(text, include_protected=False).decode() == entry("Traced", "C", CLEAN) + protected
    assert strip_secrets(text, include_protected=True).decode() == text.decode().replace(LINE, CLEAN)


def test_a_title_does_not_reveal_the_secret() -> None:
    (first, *_) = locate_secrets(entry("Inscribed", f"password={PASSWORD}", LINE).encode())

    assert first.entry == "password=[REDACTED:password]"


def test_addresses_in_evidence_count_by_entry() -> None:
    text = (
        "### [2026-11-01] Pattern: Reviews\n- **layer**: inscribed\n- **evidence**: ada@shop.example said so\n- Ask.\n"
    )

    assert [place.kind for place in locate_secrets(text.encode())] == ["email"]


def test_a_file_that_is_not_a_memory_is_searched() -> None:
    assert [place.line for place in locate_secrets(b"\xff\n" + LINE.encode())] == [2]
    conflict = f"<<<<<<< HEAD\n{LINE}\n=======\nb\n>>>>>>> topic\n"
    assert [place.line for place in locate_secrets(conflict.encode())] == [2]


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
def test_stripping_removes_every_secret_and_nothing_else(text: str) -> None:
    after = strip_secrets(text.encode(), include_protected=True)

    assert locate_secrets(after) == ()
    assert strip_secrets(after, include_protected=True) == after
    assert after.decode().replace("[REDACTED:password]", PASSWORD) == text


@settings(max_examples=60)
@given(st.binary(max_size=200))
def test_any_bytes_without_secrets_come_back_unchanged(data: bytes) -> None:
    if not locate_secrets(data):
        assert strip_secrets(data, include_protected=True) == data
