"""The examples in docs/formats.md are read as documented."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from echod.memory.document import parse
from echod.memory.model import Document, Form, Layer, UnreadableKind

PAGE = (Path(__file__).parents[2] / "docs" / "formats.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```markdown (\S+) (\S+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
FILES = re.findall(r"^```markdown\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(("form", "layer", "text"), EXAMPLES, ids=[form for form, _, _ in EXAMPLES])
def test_an_example_is_read_as_documented(form: str, layer: str, text: str) -> None:
    document = parse(text.encode())

    assert isinstance(document, Document)
    (block,) = document.blocks
    assert block.entry
    assert (block.entry.form, block.entry.layer) == (form, layer)
    assert block.entry.title
    assert block.entry.heading_date
    assert block.entry.source
    assert block.entry.body.end > block.entry.body.start


def test_every_form_has_an_example() -> None:
    assert {form for form, _, _ in EXAMPLES} == {form.value for form in Form}


def test_the_example_file_has_an_entry_and_an_opaque_block() -> None:
    (text,) = FILES
    document = parse(text.encode())

    assert isinstance(document, Document)
    assert document.preamble == "<!-- echo-schema: v1 -->\n# Reviewer Memory\n\n"
    assert [block.entry is not None for block in document.blocks] == [True, False]


def test_every_layer_and_every_reason_to_leave_a_file_alone_is_on_the_page() -> None:
    assert all(layer.value in PAGE for layer in Layer)
    told = PAGE.partition("## Files that are left alone")[2].partition("## ")[0]
    assert len(re.findall(r"^\| (?!file|---)", told, re.MULTILINE)) == len(UnreadableKind)
