"""A long search for a file that the document model cannot read, edit, write, or read in linear time."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import date

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from echod.memory.document import parse, parse_block
from echod.memory.edit import with_confidence, with_layer, with_verified
from echod.memory.identity import entry_ids
from echod.memory.model import Document, Layer
from tests.memory import strategies
from tests.memory.test_document_oracle import heading_lines_by_both

pytestmark = [pytest.mark.fuzz, pytest.mark.timeout(900)]

long_search = settings(max_examples=5000, deadline=None, suppress_health_check=list(HealthCheck))

SMALL = 10_000
GROWTH = 4
TOO_STEEP = 10  # linear time grows by 4 and quadratic by 16
WORTH_JUDGING_SECONDS = 0.1

DAY = date(2026, 3, 1)
NOTE = "## Notes \u2014 a (2026-01-01)\n"

HOSTILE: dict[str, Callable[[int], str]] = {
    "fences never closed": lambda n: "```x\n" * n,
    "fences never closed, ever shorter": lambda n: "\n".join("`" * k for k in range(int((2 * n) ** 0.5), 2, -1)),
    "two kinds of fence": lambda n: "```a\n~~~b\n" * n,
    "fences between entries": lambda n: f"```\n\n{NOTE}" * n,
    "comments between entries": lambda n: f"<!--\n\n{NOTE}" * n,
    "HTML of every kind": lambda n: f"<pre>\n\n{NOTE}<?a\n\n{NOTE}<!A\n\n{NOTE}" * (n // 3),
    "deep quotations": lambda n: ">" * n + "\n" + ">\n" * n,
    "deep lists": lambda n: "- " * n + "\n" + "\n" * n,
    "stairs of lists": lambda n: "".join(" " * (2 * min(k, 200)) + "- a\n" for k in range(n // 10)),
    "stars": lambda n: "* " * n + "x\n",
    "tabs": lambda n: "-\t" * n + "\n" + "\tx\n" * n,
    "spaces in a heading": lambda n: f"## Notes \u2014 a{' ' * n}b (2026-01-01)\n",
    "closing marks": lambda n: "## " + "# " * n + "\n",
    "dashes": lambda n: f"## Notes {chr(0x2014) * n}{' -' * n} t\n",
    "open parentheses": lambda n: "## Notes \u2014 " + "(2026-01-0" * n + "\n",
    "an id of megabytes": lambda n: "### [A-" + "A-" * n + "\n- **source**: x\n",
    "unknown fields": lambda n: "## a\n" + "- **x**: y\n" * n,
    "a continued field": lambda n: "## a\n- **layer**: traced\n" + "  more\n" * n,
    "a continued field of headings": lambda n: "## a\n- **evidence**: b\n" + "  ### [2026-01-01] x\n" * n,
    "blank lines": lambda n: "## a\n" + "\n" * n + "- **layer**: traced\n",
    "headings that may be entries": lambda n: "### [2026-01-01] x\n\n" * n,
    "separators": lambda n: NOTE + "x\n" + "---\n\n" * n,
    "late fields": lambda n: NOTE + "x\n" + "**Source**: y\n" * n,
    "values of marks": lambda n: (
        f"## a\n- **layer**: {'`' * n}\n- **confidence**: {'9' * n}x\n- **verified**: {chr(39) * n}\n"
        f"- **supersedes**: none{' ' * n}(\n"
    ),
    "attributes": lambda n: "<a" + " b=c" * n + "\n<a" + " b" * n + "=\n<a" + " " * n + "\n<a b='" + "x" * n + "\n",
    "conflict markers": lambda n: ">>>>>>> a\n" * n + "<<<<<<< a\n" * n,
    "a schema of megabytes": lambda n: f"<!-- echo-schema: v{'1' * n}\n",
    "repeated entries": lambda n: f"{NOTE}x\n" * n,
}


@long_search
@given(st.one_of(strategies.any_bytes(), st.lists(strategies.any_bytes(), max_size=4).map(b"".join)))
def test_whatever_is_read_is_written_back_and_reads_alone_as_in_its_file(data: bytes) -> None:
    document = parse(data)

    assert document.render() == data
    for block in document.blocks if isinstance(document, Document) else ():
        assert parse_block(block.text) == block


@long_search
@given(strategies.random_markdown())
def test_headings_are_where_commonmark_has_them(text: str) -> None:
    ours, theirs = heading_lines_by_both(text)

    assert ours == theirs


@long_search
@given(
    st.one_of(strategies.well_formed_files(), strategies.damaged_files()),
    strategies.DATES,
    st.floats(0, 1),
    st.sampled_from(list(Layer)),
)
def test_every_entry_can_be_edited_and_keeps_its_id(text: str, day: date, confidence: float, layer: Layer) -> None:
    document = parse(text.encode())
    for block in document.blocks if isinstance(document, Document) else ():
        if block.entry is None:
            continue

        edited = with_layer(with_confidence(with_verified(block, day), confidence), layer)

        assert edited.entry
        assert (edited.entry.verified, edited.entry.confidence, edited.entry.layer) == (day, confidence, layer)
        assert parse(edited.text.encode()) == Document("", (edited,))
        before, after = Document("", (block,)), Document("", (edited,))
        assert entry_ids("planner", before) == entry_ids("planner", after)


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_input_takes_linear_time(kind: str) -> None:
    small, large = HOSTILE[kind](SMALL), HOSTILE[kind](SMALL * GROWTH)

    cost, grown = _cost(small), _cost(large)

    assert grown < max(cost * TOO_STEEP, WORTH_JUDGING_SECONDS), f"{cost:.3f} s became {grown:.3f} s"


def _cost(text: str) -> float:
    """Processor seconds to read a file, name its entries, edit one, and write it; the best of three.

    The first and the last entry are edited: all of them would cost the entries' number times what one costs.
    """
    data = text.encode()
    costs = []
    for _ in range(3):
        begin = time.process_time()
        document = parse(data)
        if isinstance(document, Document):
            entry_ids("planner", document)
            entries = [block for block in document.blocks if block.entry]
            for block in (*entries[:1], *entries[-1:]):
                with_layer(with_confidence(with_verified(block, DAY), 0.5), Layer.INSCRIBED)
            document.render()
        costs.append(time.process_time() - begin)
    return min(costs)
