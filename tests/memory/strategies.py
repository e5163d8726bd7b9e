"""Hypothesis strategies: memory files made of every form, mixed with Markdown of all kinds, and broken on purpose."""

from __future__ import annotations

from datetime import date

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from echod.memory.model import Layer

LAYER_WORDS = st.sampled_from([layer.value for layer in Layer]).flatmap(
    lambda word: st.sampled_from([word, word.title(), word.upper()])
)
DASHES = st.sampled_from(["\u2014", "\u2013", "-", "--", "\u2014\u2014", "\u2212"])
WORDS = st.sampled_from([
    "retry", "cache", "lock", "index", "queue", "`db/pool.py`", "N+1", "timeout", "**bold**", "flaky", "naïve",
    "東京", "キャッシュ", "קובץ", "🙂", "non_use", "&", "<b>", "\\n", "40%",
])  # fmt: skip
TITLES = st.lists(WORDS, min_size=1, max_size=5).map(" ".join)
KINDS = st.sampled_from(["Pattern", "Decision", "Convention", "Review patterns", "Audit findings"])
DATES = st.dates(date(2025, 1, 1), date(2027, 12, 31))
SOURCES = st.sampled_from(
    ["`rune:review 12ab`", "`rune:arc arc-1` (two sessions)", "manual", "user:remember", "`doc-pack:web@1.0.0`"]
)
CONFIDENCES = st.one_of(
    st.sampled_from(["HIGH", "MEDIUM (seen twice)", "low", "LOW (auto-generated, unverified)", "0.85", "90%", "`0.5`"]),
    st.floats(0, 1).map(lambda number: f"{number:.2f}"),
    st.sampled_from(["1.5", "-1", "certain", "", "HIGH/LOW", "n/a"]),
)
EVIDENCE = st.sampled_from(["`src/a.py:1-5` \u2014 three of them", "`a.md`\n  and `b.md`", "seen in review", ""])
SENTENCES = st.lists(WORDS, min_size=1, max_size=12).map(lambda words: "Use " + " ".join(words) + ".")
BODIES = st.one_of(
    st.just(""),
    SENTENCES,
    st.lists(SENTENCES, min_size=1, max_size=4).map("\n\n".join),
    st.lists(SENTENCES, min_size=1, max_size=4).map(lambda lines: "\n".join(f"- **Lead**: {line}" for line in lines)),
    SENTENCES.map(lambda line: f"### Key Learnings\n\n1. **Lead**: {line}\n"),
    SENTENCES.map(lambda line: f"```sh\n## not a heading\n{line}\n```"),
    SENTENCES.map(lambda line: f"{line}\n\n**Category**: pattern\n**Domain**: backend"),
    SENTENCES.map(lambda line: f"    ## indented\n\n> ## quoted\n\n- ## in a list\n\n{line}\n\n---"),
)


@st.composite
def bullet_entries(draw: DrawFn) -> str:
    """The bullet form, with any of its fields missing except one that makes it an entry."""
    mark = draw(st.sampled_from(["-", "-", "*"]))
    fields = [("layer", draw(LAYER_WORDS)), ("source", draw(SOURCES)), ("confidence", draw(CONFIDENCES))]
    fields += [("evidence", draw(EVIDENCE)), ("verified", draw(DATES).isoformat()), ("supersedes", "none")]
    chosen_fields = draw(st.lists(st.sampled_from(fields), min_size=1, unique=True))
    present_fields = [field for field in fields if field in chosen_fields]
    name_of = draw(st.sampled_from([str.lower, str.title]))
    lines = [f"{mark} **{name_of(name)}**: {value}".rstrip() for name, value in present_fields]
    learning = draw(SENTENCES)
    identifier = draw(st.one_of(DATES.map(date.isoformat), st.just("SA-RC-001")))
    heading = f"### [{identifier}] {draw(KINDS)}: {draw(TITLES)}"
    return "\n".join([heading, *lines, f"{mark} {learning}\n  and so on", ""])


@st.composite
def layer_heading_entries(draw: DrawFn) -> str:
    """The layer heading form: bare metadata, a body that may have sections, sometimes a separator."""
    after = draw(st.sampled_from(["", "", " \u2014 updated", " ##"]))
    heading = f"## {draw(LAYER_WORDS)} {draw(DASHES)} {draw(TITLES)} ({draw(DATES)}){after}"
    lines = draw(st.sampled_from([[""], []]))
    lines = [*lines, f"**Source**: {draw(SOURCES)}"] if draw(st.booleans()) else lines
    lines = [*lines, f"**Confidence**: {draw(CONFIDENCES)}".rstrip()] if draw(st.booleans()) else lines
    lines = [*lines, "**Tags**: `a`, `b`"] if draw(st.booleans()) else lines
    return "\n".join([heading, *lines, "", draw(BODIES), draw(st.sampled_from(["", "\n---\n"]))])


@st.composite
def observation_entries(draw: DrawFn) -> str:
    """The observation form with either kind of source line."""
    word = draw(st.sampled_from(["Observations", "Inscribed"]))
    task = draw(TITLES)
    source = draw(st.sampled_from(["**Source**", "- **source**"]))
    return (
        f"## {word} \u2014 Task: {task} ({draw(DATES)})\n"
        f"- **layer**: observations\n"
        f"{source}: `rune-review-1/agent`\n"
        f"- **Confidence**: LOW (auto-generated, unverified)\n"
        f"- Task completed: {task}\n"
        f"- Context: {draw(SENTENCES)}\n"
    )


@st.composite
def writer_entries(draw: DrawFn) -> str:
    """The writer form: the layer only in a bullet."""
    heading = draw(
        st.sampled_from(
            ["{t}", "[{d}] Convention: {t}", "Assumption Echo \u2014 Task: {t} ({d})", "Review Recurrence: {t}"]
        )
    ).format(t=draw(TITLES), d=draw(DATES))
    return (
        f"## {heading}\n"
        f"- **layer**: {draw(LAYER_WORDS)}\n"
        f"- **source**: `learn/session`\n"
        f"- **confidence**: {draw(st.sampled_from(['HIGH', 'MEDIUM', 'LOW', '0.7']))}\n"
        f"- **date**: {draw(DATES)}\n"
        f"\n{draw(BODIES)}\n"
    )


@st.composite
def notes_entries(draw: DrawFn) -> str:
    """The notes form."""
    return f"## Notes \u2014 {draw(TITLES)} ({draw(DATES)})\n**Source**: user:remember\n- {draw(SENTENCES)}\n"


def entries() -> SearchStrategy[str]:
    """One entry in any form."""
    return st.one_of(
        bullet_entries(), layer_heading_entries(), observation_entries(), writer_entries(), notes_entries()
    )


def opaque_sections() -> SearchStrategy[str]:
    """A section that is not an entry."""
    return st.one_of(
        st.tuples(TITLES, SENTENCES).map(lambda parts: f"## {parts[0]}\n\n{parts[1]}\n"),
        TITLES.map(
            lambda title: f"## Consolidated \u2014 {title} (2026-02 to 2026-03)\n\n**Source**: 20 runs\n\n- x\n"
        ),
    )


PREAMBLES = st.sampled_from(
    [
        "",
        "<!-- echo-schema: v1 -->\n# Planner Memory\n\n*No echoes yet.*\n\n",
        "# Reviewer Echoes\n\n",
        "\n\n",
        "text\n\n",
    ]
)


@st.composite
def well_formed_files(draw: DrawFn) -> str:
    """Files of careful writers: complete blocks, a blank line before each."""
    blocks = draw(st.lists(st.one_of(entries(), entries(), opaque_sections()), max_size=6))
    return draw(PREAMBLES) + "\n".join(blocks)


FRAGMENTS = st.sampled_from(
    [
        "", "", "## h", "  ## in", "   ## in three", "- a", "  b", "- ## x", "* c", "1. d", "2. e", "10) f", "-", "1.",
        "> q", "> ## q", ">", "> - a", ">   - b", "para", "```", "```py", "~~~", "~~~~", "  ```", "`````", "``` a`b",
        "<div>", "</div>", "<foo>", "<foo bar='x'>", "<a", "<!-- c -->", "<!--", "-->", "<!-->", "text -->", "<pre>",
        "</pre>", "<?php", "?>", "<!X", "<![CDATA[", "]]>", "---", "===", "***", "* * *", "_ _ _", "-\ta", "- a\tb",
        "  - n", "###nospace", "##", "## ", "####### seven", "\\## esc", "- [ ] task", "**B**: y", "-     code",
        "1.  wide", "> ```", "- ```", "  ## in item fence", "- <!--", "  -->", "> <!--", "</foo >", "- - a", "- > q",
        "> > d", "   1. x", "\n    ## code", "\n\t## tab", "\n     ## five", "\n    - nested", "\n    ```", "\u00a0",
        "### h", "### [2026-01-01] Pattern: p\n- **layer**: traced", "   ### [2026-01-02] Pattern: p\n- **layer**: x",
        "- ### [2026-01-03] Pattern: p\n- **layer**: x", "> ### [2026-01-04] Pattern: p\n- **layer**: x",
        "  ### [2026-01-05] Pattern: p\n- **source**: x", "### [SA-RC-001] a ###\n- **evidence**: x",
        "\n    ### [2026-01-06] Pattern: p\n- **layer**: x", "#### [2026-01-07] p\n- **layer**: x", "- **layer**: x",
    ]
)  # fmt: skip


def random_markdown() -> SearchStrategy[str]:
    """Lines of Markdown in any order. Indented code follows a blank line, where all parsers agree on it.

    None is a link reference definition. CommonMark has it begin as a paragraph, which a lazy line may continue;
    markdown-it ends it where it is complete, and so closes the list item or quotation around it one line earlier:
    `- [a]: b`, `[a]: b`, `  ## h` has its heading in the item by the first reading and outside by the second.
    """
    return st.lists(FRAGMENTS, max_size=25).map("\n".join)


@st.composite
def damaged_files(draw: DrawFn) -> str:
    """Files after accidents: cut anywhere, mixed with anything, with other line endings."""
    parts = st.one_of(
        entries(), opaque_sections(), random_markdown(), st.just("```py\nnever closed\n"), st.just("<!-- open\n")
    )
    text = "".join(draw(st.lists(parts, max_size=6)))
    text = text[draw(st.integers(0, 40)) : len(text) - draw(st.integers(0, 40))]
    text = text.replace("\n", draw(st.sampled_from(["\n", "\n", "\r\n", "\r\r\n", "\n\n"])))
    text = text.replace("e", draw(st.sampled_from(["e", "e", "\0", "\t", "\u200b", "x" * 3000])), 3)
    return draw(st.sampled_from(["", "", "\ufeff"])) + text


def any_bytes() -> SearchStrategy[bytes]:
    """Everything from a tidy file to noise."""
    return st.one_of(
        well_formed_files().map(str.encode),
        damaged_files().map(str.encode),
        st.text(max_size=200).map(str.encode),
        st.binary(),
    )
