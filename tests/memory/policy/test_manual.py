"""Laws of the user's own edits: nothing else changes, and removed entries can be restored."""

from __future__ import annotations

from datetime import date

from hypothesis import given
from hypothesis import strategies as st

from echod.memory.archive import read_archive, render_archived_entries, to_archived_entry
from echod.memory.document import parse
from echod.memory.identity import block_content, entry_ids
from echod.memory.model import Document, Layer
from echod.memory.policy.manual import (
    EditRefusal,
    Removal,
    Restoration,
    change_layer,
    plan_reset,
    remove_entries,
    restore_entry,
)
from echod.memory.policy_model import Rule
from echod.memory.redact import redact_entry
from echod.memory.shorten import condense

DAY = date(2026, 11, 20)
ROLE = "reviewer"

_LAYERS = st.sampled_from(["etched", "notes", "inscribed", "observations", "traced", "unheard-of"])
_TITLES = st.sampled_from(["Close the pool", "Keys need the locale", "Notes-taking", "Task"])
_LINES = st.sampled_from(
    ["- It says so.", "text", "", "```", "- **layer**: traced", "  ## indented", "---", "<!--", "-->", "### more"]
)


@st.composite
def _entry(draw: st.DrawFn) -> str:
    layer, title, body = draw(_LAYERS), draw(_TITLES), "\n".join(draw(st.lists(_LINES, max_size=5)))
    return draw(
        st.sampled_from(
            [
                f"### [2026-11-01] Pattern: {title}\n- **layer**: {layer}\n- **source**: s\n- It is so.\n{body}\n",
                f"## {layer.title()} \u2014 {title} (2026-11-01)\n\n**Source**: `s`\n\n{body}\n\n",
                f"## Observations - Task: {title} (2026-11-01)\n- **layer**: {layer}\n**Source**: `s`\n{body}\n",
                f"## {title}\n- **layer**: {layer.upper()}\n- **source**: s\n{body}\n\n",
                f"## A section of one's own\n\n{body}\n\n",
            ]
        )
    )


@st.composite
def _documents(draw: st.DrawFn) -> Document:
    head = draw(st.sampled_from(["", "<!-- echo-schema: v1 -->\n# Reviewer Memory\n\n", "# Mine\n\nWords.\n"]))
    text = head + "".join(draw(st.lists(_entry(), max_size=6)))
    text = text.replace("\n", draw(st.sampled_from(["\n", "\r\n"])))
    document = parse((text if draw(st.booleans()) else text.rstrip()).encode())
    assert isinstance(document, Document)
    return document


def ids_of(document: Document) -> list[str]:
    return [identity for identity in entry_ids(ROLE, document) if identity is not None]


@given(_documents(), st.data(), st.sampled_from([Layer.ETCHED, Layer.NOTES, Layer.INSCRIBED]))
def test_a_layer_change_affects_one_entry_and_nothing_else(
    document: Document, data: st.DataObject, layer: Layer
) -> None:
    if not (ids := ids_of(document)):
        return
    chosen = data.draw(st.sampled_from(ids))

    after = change_layer(ROLE, document, chosen, layer)

    if isinstance(after, EditRefusal):
        return
    assert parse(after.render()) == after
    assert entry_ids(ROLE, after) == entry_ids(ROLE, document)
    assert after.preamble == document.preamble
    for identity, old, new in zip(entry_ids(ROLE, document), document.blocks, after.blocks, strict=True):
        if identity != chosen:
            assert new == old
            continue
        assert old.entry is not None
        assert new.entry is not None
        assert new.entry.layer is layer
        assert (new.entry.verified, new.entry.confidence, new.entry.source) == (
            old.entry.verified,
            old.entry.confidence,
            old.entry.source,
        )
        assert _body(new.text, new.entry.body.start, new.entry.body.end) == _body(
            old.text, old.entry.body.start, old.entry.body.end
        )


def _body(text: str, start: int, end: int) -> str:
    return text[start:end]


@given(_documents(), st.sampled_from([Layer.ETCHED, Layer.NOTES, Layer.INSCRIBED]))
def test_changing_an_entry_to_its_own_layer_does_nothing(document: Document, layer: Layer) -> None:
    for identity, block in zip(entry_ids(ROLE, document), document.blocks, strict=True):
        if identity is not None and block.entry is not None and block.entry.layer is layer:
            assert change_layer(ROLE, document, identity, layer) is document


@given(_documents(), st.data())
def test_removed_entries_are_in_the_archive_and_the_rest_keeps_its_bytes(
    document: Document, data: st.DataObject
) -> None:
    ids = ids_of(document)
    chosen = data.draw(st.sets(st.sampled_from(ids))) if ids else set()

    out = remove_entries(ROLE, document, chosen, Rule.FORGOTTEN, DAY)

    if isinstance(out, EditRefusal):
        return
    pairs = list(zip(entry_ids(ROLE, document), document.blocks, strict=True))
    assert out.document.blocks == tuple(block for identity, block in pairs if identity not in chosen)
    assert out.document.preamble == document.preamble
    restored = read_archive(render_archived_entries(out.archived, 7))
    assert not restored.damaged
    assert [(e.id, e.text, e.rule) for e in restored.entries] == [
        (identity, redact_entry(block.text).text, "forgotten") for identity, block in pairs if identity in chosen
    ]


@given(_documents(), st.data())
def test_a_removed_entry_is_restored_with_its_bytes(document: Document, data: st.DataObject) -> None:
    if not (ids := ids_of(document)):
        return
    out = remove_entries(ROLE, document, [data.draw(st.sampled_from(ids))], Rule.FORGOTTEN, DAY)
    if not isinstance(out, Removal):
        return
    (archived_entry,) = read_archive(render_archived_entries(out.archived, 7)).entries

    restored = restore_entry(ROLE, out.document, archived_entry)

    if isinstance(restored, Restoration):
        assert restored.document.render().endswith(archived_entry.text.encode())
        assert [block_content(block) for block in restored.document.blocks[:-1]] == [
            block_content(b) for b in out.document.blocks
        ]
        assert entry_ids(ROLE, restored.document)[-1] == restored.id
        assert isinstance(restore_entry(ROLE, restored.document, archived_entry), EditRefusal)


def test_a_full_text_replaces_its_condensed_form() -> None:
    long = "### [2026-11-01] Pattern: Long\n- **layer**: inscribed\n- **source**: s\n- It is so.\n" + "  More.\n" * 30
    document = parse(f"# M\n\n{long}\n## Mine\n\nWords.\n".encode())
    assert isinstance(document, Document)
    (identity,) = ids_of(document)
    archived_entry = to_archived_entry(document.blocks[0], identity, ROLE, Rule.CONDENSED, DAY)
    short = condense(document.blocks[0])
    assert short is not None
    condensed_file = parse(document.render().replace(document.blocks[0].text.encode(), short.text.encode()))
    assert isinstance(condensed_file, Document)

    restored = restore_entry(ROLE, condensed_file, archived_entry)

    assert restored == Restoration(document, identity, short.text)


def test_an_entry_that_is_not_there_is_named() -> None:
    document = parse(b"# M\n")
    assert isinstance(document, Document)

    for refusal in (
        change_layer(ROLE, document, "0123456789ab", Layer.ETCHED),
        remove_entries(ROLE, document, ["0123456789ab"], Rule.FORGOTTEN, DAY),
    ):
        assert isinstance(refusal, EditRefusal)
        assert "0123456789ab" in refusal.reason


@given(_documents())
def test_a_reset_keeps_every_byte_in_the_archive(document: Document) -> None:
    new = b"<!-- echo-schema: v1 -->\n# Reviewer Memory\n"

    plan = plan_reset(ROLE, document, new, DAY, file="MEMORY.md")

    if not document.blocks:
        assert plan is None
        return
    assert plan is not None
    assert plan.data == new
    assert plan.entry_count == len(ids_of(document))
    head = document.preamble if document.preamble.strip() not in ("", new.decode().strip()) else ""
    texts = [*([head] if head else []), *(block.text for block in document.blocks)]
    assert [e.text for e in read_archive(render_archived_entries(plan.archived, 7)).entries] == [
        redact_entry(text).text for text in texts
    ]
