"""Claude Code's own memory: each check has a wrong and a right sample, and a repair changes pointers and order only."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echod.memory.auto_memory import checks
from echod.memory.auto_memory.checks import check_directory, similar_pairs
from echod.memory.auto_memory.notes import INDEX, MemoryDirectory, NoteFile, find_pointers, load_index
from echod.memory.auto_memory.repair import plan_repair

NOW = 1_795_000_000.0
DAY = 86_400.0
LINE = "- [Fact {0}](fact-{0}.md) {1}\n"


def note(
    name: str, description: str = "", body: str = "", *, extra: str = "", kind: str = "project", age: float = 1
) -> NoteFile:
    description = description or f"Where {name} lives in the deployment pipeline of {name}"
    text = (
        f"---\nname: {name}\ndescription: {description}\nmetadata:\n  type: {kind}\n{extra}---\n"
        f"{body or f'The words of {name} that no other file has.'}\n"
    )
    return raw(f"{name}.md", text, age=age)


def raw(name: str, text: str, *, age: float = 1) -> NoteFile:
    return NoteFile(name, text.encode(), NOW - age * DAY)


def directory(
    index: str | None, *notes: NoteFile, others: tuple[str, ...] = (), unreadable: tuple[tuple[str, str], ...] = ()
) -> MemoryDirectory:
    index_file = None if index is None else NoteFile(INDEX, index.encode(), NOW)
    return MemoryDirectory(index_file, notes, others, unreadable)


def index_of(*notes: NoteFile) -> str:
    return "# Memory\n\n" + "".join(f"- [{one.title}]({one.name})\n" for one in notes)


def indexed(*notes: NoteFile, others: tuple[str, ...] = ()) -> MemoryDirectory:
    return directory(index_of(*notes), *notes, others=others)


def long_index(lines: int, width: int = 0) -> MemoryDirectory:
    """An index of so many pointers; the first names the oldest file."""
    notes = [note(f"fact-{n}", age=lines - n) for n in range(lines)]
    return directory("".join(LINE.format(n, "x" * width) for n in range(lines)), *notes)


def sorted_long_index(lines: int) -> MemoryDirectory:
    notes = [note(f"fact-{n}", age=n) for n in range(lines)]
    return directory("".join(LINE.format(n, "") for n in range(lines)), *notes)


class Sample(NamedTuple):
    """A directory with the problem, where it must be reported, and the nearest one without it."""

    wrong: MemoryDirectory
    file: str
    line: int | None
    right: MemoryDirectory


def superseding(first: str, second: str) -> MemoryDirectory:
    notes = [note("old", age=1), note("new", extra="supersedes: old\n", age=500)]
    filler = [note(f"fact-{n}", age=400) for n in range(201)]
    lines = [LINE.format(n, "") for n in range(199)]
    index = f"- [{first}]({first}.md)\n{''.join(lines)}- [{second}]({second}.md)\n"
    return directory(index, *notes, *filler[:199])


SECRET = "ghp_" + "aB3dE5gH7jK9mN1pQ3rS5tU7vW9xY1zA3bC5"
SAMPLES: Mapping[str, Sample] = {
    "auto-unreadable": Sample(
        indexed(NoteFile("a.md", b"---\nname: a\n---\n\xff", NOW)), "a.md", None, indexed(note("a"))
    ),
    "auto-index-missing": Sample(directory(None, note("a")), INDEX, None, directory(None)),
    "auto-index-over": Sample(long_index(201), INDEX, 201, long_index(200)),
    "auto-index-near": Sample(long_index(161), INDEX, None, long_index(160)),
    "auto-index-cut": Sample(long_index(201), INDEX, 201, long_index(200)),
    "auto-order": Sample(superseding("old", "new"), INDEX, 201, superseding("new", "old")),
    "auto-index-long": Sample(long_index(1, 180), INDEX, 1, long_index(1, 170)),
    "auto-index-prose": Sample(
        directory("# Memory\n\nToday we met.\nThen we left.\n- [a](a.md)\nMore.\nAnd more.\n", note("a")), INDEX, 3,
        directory("# Memory\n\nToday we met.\n- [a](a.md)\n", note("a")),
    ),
    "auto-pointer-dead": Sample(
        directory("- [A](a.md)\n- [B](b.md)\n", note("a")), INDEX, 2,
        directory("- [A](a.md)\n- [Site](https://x.test/b.md)\n- [Else](../b.md)\n", note("a")),
    ),
    "auto-pointer-twice": Sample(
        directory("- [A](a.md)\n- [Again](./a.md)\n", note("a")), INDEX, 2, indexed(note("a"), note("b"))
    ),
    "auto-pointer-missing": Sample(
        directory("- [A](a.md)\n", note("a"), note("b")), "b.md", None,
        directory("- [A](a.md), see [[b]]\n", note("a"), note("b")),
    ),
    "auto-backup": Sample(
        indexed(note("a"), others=("a.md.bak",)), "a.md.bak", None, indexed(note("a"), others=("data.json",))
    ),
    "auto-file-unnamed": Sample(
        indexed(note("a"), others=("data.json",)), "data.json", None,
        directory("- [A](a.md) with [data](data.json)\n", note("a"), others=("data.json",)),
    ),
    "auto-front-matter": Sample(indexed(raw("a.md", "Only text.\n")), "a.md", 1, indexed(note("a"))),
    "auto-type": Sample(indexed(note("a", kind="opinion")), "a.md", 1, indexed(note("a", kind="user"))),
    "auto-front-matter-cut": Sample(
        indexed(note("a", "Fixes the flaky test of issue #12 in the parser")), "a.md", 3,
        indexed(note("a", '"Fixes the flaky test of issue #12 in the parser"')),
    ),
    "auto-file-name": Sample(indexed(raw("My Note.md", "x")), "My Note.md", None, indexed(note("my-note"))),
    "auto-name-twice": Sample(
        indexed(note("a"), raw("b.md", "---\nname: a\ndescription: x\n---\n")), "b.md", 2, indexed(note("a"), note("b"))
    ),
    "auto-name-version": Sample(
        indexed(note("deploy"), note("deploy-2025-11-02")), "deploy-2025-11-02.md", None,
        indexed(note("error-1045"), note("error-2102")),
    ),
    "auto-field": Sample(
        indexed(note("a", extra="triggers: [deploy]\n")), "a.md", 6, indexed(note("a", extra="  triggers: [deploy]\n"))
    ),
    "auto-path-dead": Sample(
        indexed(note("a", body="See `/srv/app/run.sh:12` first."))._replace(missing_paths=frozenset({"/srv/app/run.sh"})),
        "a.md", 7,
        indexed(note("a", body="See `/srv/app/go.sh`, `/api` and /srv/app/run.sh."))._replace(
            missing_paths=frozenset({"/srv/app/run.sh", "/api"})
        ),
    ),
    "auto-emphasis": Sample(
        indexed(note("a", body="\N{FIRE} " * 6)), "a.md", None, indexed(note("a", body="\N{FIRE} " * 5))
    ),
    "auto-description-vague": Sample(
        indexed(note("a", "Some notes about the project")), "a.md", 3, indexed(note("a", "Postgres upgrade blocks CI"))
    ),
    "auto-description-same": Sample(
        indexed(note("a", "Deploy needs the VPN token"), note("b", "The deploy needs a VPN token.")), "b.md", 3,
        indexed(note("a", "Deploy needs the VPN token"), note("b", "Tests need the database container")),
    ),
    "auto-duplicate": Sample(
        indexed(note("a", body="One two three four five six seven"), note("b", body="One two three four five six seven")),
        "b.md", 7,
        indexed(note("a", body="One two three four five six seven"), note("b", body="One two eight nine ten six seven")),
    ),
    "auto-similar": Sample(
        indexed(
            note("a", body="one two three four five six seven eight nine ten eleven"),
            note("b", body="one two three four five six seven eight nine ten eleven twelve"),
        ), "b.md", 7,
        indexed(
            note("a", body="one two three four five six seven eight nine ten eleven"),
            note("b", body="one two three four five six seven eight thirteen fourteen fifteen"),
        ),
    ),
    "auto-link-dead": Sample(
        indexed(note("a", body="First.\nSee [[nowhere]].")), "a.md", 8,
        indexed(note("a", body="See [[b]], [it](b.md) and [[MEMORY]]."), note("b")),
    ),
    "auto-supersedes-dead": Sample(
        indexed(note("a", extra="supersedes: nowhere\n")), "a.md", 6,
        indexed(note("a", extra="supersedes: b.md\n"), note("b", extra="supersedes: none\n")),
    ),
    "auto-secret": Sample(
        indexed(note("a", body=f"Use it:\n\ntoken {SECRET}")), "a.md", 9, indexed(note("a", body="token <TOKEN>"))
    ),
    "auto-file-long": Sample(
        indexed(note("a", body="x " * 12_500)), "a.md", None, indexed(note("a", body="x " * 12_000))
    ),
    "auto-stale": Sample(indexed(note("a", age=181)), "a.md", None, indexed(note("a", age=179))),
}  # fmt: skip


@pytest.mark.parametrize("code", SAMPLES)
def test_a_wrong_sample_is_found_where_it_is_and_a_right_one_is_not(code: str) -> None:
    sample = SAMPLES[code]
    found = [finding for finding in check_directory(sample.wrong, NOW) if finding.code == code]

    assert [(finding.file, finding.line) for finding in found] == [(sample.file, sample.line)]
    assert found[0].text.endswith(".")
    assert found[0].fix
    assert [finding for finding in check_directory(sample.right, NOW) if finding.code == code] == []


def test_every_check_has_samples() -> None:
    written = set(
        re.findall(r'"(auto-[a-z-]+)"(?=, | if |,\n)', Path(checks.__file__).read_text().split("class _Contents")[1])
    )

    assert written == set(SAMPLES)


def test_a_healthy_directory_has_no_finding() -> None:
    assert check_directory(indexed(note("a"), note("b"), note("c")), NOW) == []


@pytest.mark.parametrize(
    ("front", "text"),
    [
        ("---\nname: a\n", "does not end"),
        ("---\nname: a\ndescription: one: two: three\n---\n", "not valid YAML"),
        ("---\nname: a\nmetadata:\n  type: user\n---\n", "no description"),
        ("---\ndescription: Words of its own here\nmetadata:\n  type: user\n---\n", "no name"),
    ],
)
def test_every_fault_of_front_matter_is_named(front: str, text: str) -> None:
    found = [f for f in check_directory(indexed(raw("a.md", f"{front}body\n")), NOW) if f.code == "auto-front-matter"]

    assert [text in finding.text for finding in found] == [True]


def test_no_finding_shows_a_secret() -> None:
    notes = (note("a", body=f"[[{SECRET}]] {SECRET}"), raw("b.md", f"---\nname: b\nmetadata:\n  type: {SECRET}\n---\n"))
    found = check_directory(directory(f"- [{SECRET}](gone.md)\n", *notes), NOW)

    assert [finding for finding in found if SECRET in finding.text + finding.fix] == []
    assert sum(finding.code == "auto-secret" for finding in found) >= 3


def test_a_file_that_changed_by_its_own_stamp_is_not_stale() -> None:
    fresh = note("a", extra="modified: 2026-11-20T10:00:00Z\n", age=400)

    assert [f for f in check_directory(indexed(fresh), NOW) if f.code == "auto-stale"] == []


def lines(first: int, last: int) -> str:
    return "".join(f"- [T{n}](t{n}.md) {'x' * 20}\n" for n in range(first, last))


@pytest.mark.parametrize(
    ("text", "count", "first_cut"),
    [
        (lines(1, 261), 260, "[T201]"),
        ("\n" * 10 + lines(1, 201), 200, None),
        ("---\nname: x\n" + "k: v\n" * 18 + "---\n" + lines(1, 191), 190, None),
        (lines(1, 101) + "<!-- c\n" + "c\n" * 18 + "-->\n" + lines(101, 231), 230, "[T201]"),
        (lines(1, 101) + "<!-- c -->\n<!-- c -->\n" + lines(101, 231), 230, "[T201]"),
        (lines(1, 101) + "- [Z](z.md) <!-- c --> tail\n" + lines(101, 231), 231, "[T200]"),
        (lines(1, 101) + "<!-- c\n" + lines(101, 231), 231, "[T200]"),
        (lines(1, 101) + "```\n<!-- c\nc\n-->\n```\n" + lines(101, 231), 235, "[T196]"),
        (lines(1, 101) + "<!-- c --> after\n\n<!-- c -->\n\n" + lines(101, 231), 232, "[T199]"),
        ("---\nname: x\n" + lines(1, 231), 232, "[T199]"),
        (lines(1, 231).replace("\n", "\r\n"), 230, "[T201]"),
        (lines(1, 101) + "\n" * 10 + lines(101, 231), 240, "[T191]"),
    ],
    ids=["long", "blank start", "front matter", "comment block", "two comments", "comment in a line", "open comment",
         "comment in code", "text after a comment", "open front matter", "crlf", "blank lines"],
)  # fmt: skip
def test_lines_are_counted_as_the_host_counts_them(text: str, count: int, first_cut: str | None) -> None:
    """Every case was measured with the real client; `tests/client` repeats some of them."""
    loaded = load_index(text)

    assert loaded.lines == count
    assert (loaded.first_cut is None) == (first_cut is None)
    if loaded.first_cut is not None:
        assert str(first_cut) in text.split("\n")[loaded.first_cut - 1]


def test_characters_are_counted_as_javascript_counts_them() -> None:
    text = "".join(f"- [T{n}](t{n}.md) {chr(0x1F600) * 80}\n" for n in range(200))

    loaded = load_index(text)

    assert loaded.characters == len(text.strip().encode("utf-16-le")) // 2
    assert (
        loaded.first_cut
        == 1 + len(text.encode("utf-16-le")[: 2 * 25_001].decode("utf-16-le", "ignore").split("\n")) - 1
    )


@given(st.lists(st.text("ab\U0001f600 ", max_size=400), max_size=300))
def test_what_is_loaded_fits_and_the_next_line_would_not(texts: list[str]) -> None:
    index = [f"- {text}|" for text in texts]
    loaded = load_index("\n".join(index))
    number = len(index) if loaded.first_cut is None else loaded.first_cut - 1

    def fits(count: int) -> bool:
        return count <= 200 and len("\n".join(index[:count]).encode("utf-16-le")) // 2 <= 25_000

    assert fits(number)
    assert number == len(index) or not fits(number + 1)


def test_pointers_are_list_items_with_a_link_to_a_file() -> None:
    text = "[A](a.md)\n- [B](<b c.md>) and [C](c.md#part)\n* [D](d%20e.md)\n```\n- [E](e.md)\n```\n1. [F](https://f.test)\n"

    assert [(p.line, p.target) for p in find_pointers(text)][:3] == [(2, "b c.md"), (2, "c.md"), (3, "d e.md")]


@given(st.lists(st.frozensets(st.sampled_from("abcdefghij"), min_size=1), max_size=12))
def test_similar_pairs_are_found_as_by_a_comparison_of_all(sets: list[frozenset[str]]) -> None:
    words = dict(enumerate(sets))
    found = {frozenset(pair) for pair in similar_pairs(words, 0.8)}
    every = {
        frozenset((a, b))
        for a in words
        for b in words
        if a < b and len(sets[a] & sets[b]) >= 0.8 * len(sets[a] | sets[b])
    }

    assert found <= every
    assert bool(found) == bool(every)


# Repair


def repaired(memory: MemoryDirectory) -> str:
    plan = plan_repair(memory)
    assert plan is not None
    return plan.data.decode()


def with_index(memory: MemoryDirectory, data: bytes) -> MemoryDirectory:
    return memory._replace(index_file=NoteFile(INDEX, data, NOW))


def test_a_pointer_to_a_file_of_nearly_the_same_name_is_corrected() -> None:
    memory = directory("# M\n\n- [A](My_Fact.md) hook\n", note("my-fact"))

    assert repaired(memory) == "# M\n\n- [A](my-fact.md) hook\n"


def test_a_dead_pointer_is_removed_and_every_other_byte_stays() -> None:
    memory = directory("# M\r\n\r\n- [A](a.md)\r\n- [B](b.md)\r\ntext\r\n", note("a"))

    assert repaired(memory) == "# M\r\n\r\n- [A](a.md)\r\ntext\r\n"


@pytest.mark.parametrize("line", ["- [B](b.md) and [A](a.md)", "- [B](b.md)\n  more about it"])
def test_a_line_that_has_more_than_a_dead_pointer_stays(line: str) -> None:
    memory = directory(f"- [A](a.md)\n{line}\n", note("a"))
    plan = plan_repair(memory)

    assert plan is not None
    assert (plan.changes, len(plan.left)) == ((), 1)


def test_no_pointer_is_removed_when_many_files_are_lost() -> None:
    memory = directory("".join(LINE.format(n, "") for n in range(6)), note("fact-0"), note("fact-1"))
    plan = plan_repair(memory)

    assert plan is not None
    assert (plan.changes, len(plan.left)) == ((), 4)
    assert "restore them first" in plan.left[0]


def test_a_file_without_a_pointer_gets_one_without_its_secret() -> None:
    memory = directory("- [A](a.md)\n\n\n", note("a"), note("b", f"The token is {SECRET}, keep it"))

    text = repaired(memory)

    assert text.startswith("- [A](a.md)\n- [b](b.md) \u2014 The token is ")
    assert SECRET not in text


def test_a_missing_index_is_written_newest_first() -> None:
    text = repaired(directory(None, note("a", age=9), note("b", age=2)))

    assert [pointer.target for pointer in find_pointers(text)] == ["b.md", "a.md"]


def test_an_index_within_its_limits_keeps_its_order() -> None:
    assert plan_repair(long_index(200)) is None


def test_a_cut_index_is_sorted_newest_first_and_has_the_same_lines() -> None:
    memory = long_index(230)
    plan = plan_repair(memory)

    assert plan is not None
    assert plan.only_order
    assert find_pointers(plan.data.decode())[0].target == "fact-229.md"
    assert [f for f in check_directory(with_index(memory, plan.data), NOW) if f.code == "auto-order"] == []


def test_what_is_superseded_is_sorted_last() -> None:
    memory = superseding("old", "new")

    targets = [pointer.target for pointer in find_pointers(repaired(memory))]

    assert targets[-1] == "old.md"
    assert targets.index("new.md") < 200


def test_sections_keep_their_lines_and_move_as_a_whole() -> None:
    old = [note(f"fact-{n}", age=300 + n) for n in range(120)]
    new = [note(f"fact-{n}", age=n - 100) for n in range(120, 240)]
    first, second = ("".join(LINE.format(n, "") for n in numbers) for numbers in (range(120), range(120, 240)))
    memory = directory(f"# Memory\n\nIntro.\n\n## Old\n\n{first}\n## New\n\n{second}", *old, *new)

    text = repaired(memory)

    assert text.startswith("# Memory\n\nIntro.\n\n## New\n\n- [Fact 120]")
    assert text.index("## New") < text.index("## Old")
    assert [f for f in check_directory(with_index(memory, text.encode()), NOW) if f.code == "auto-order"] == []


NAMES = st.sampled_from([f"n{number}" for number in range(6)])
INDEX_LINES = st.one_of(
    NAMES.map(lambda name: f"- [{name}]({name}.md) hook"),
    NAMES.map(lambda name: f"  more about {name}"),
    st.sampled_from(["", "## Part", "# Memory", "text", "- item without a link"]),
)


@given(st.lists(INDEX_LINES, max_size=12), st.sets(NAMES), st.integers(0, 2))
def test_a_repair_removes_only_dead_pointers_and_repairs_everything_at_once(
    parts: list[str], names: set[str], padding: int
) -> None:
    index = [*parts, *(f"- filler {n}" for n in range(padding * 110))]
    notes = [note(name, age=ord(name[1])) for name in sorted(names)]
    memory = directory("".join(f"{line}\n" for line in index), *notes)
    plan = plan_repair(memory)
    if plan is None:
        return
    after = plan.data.decode().split("\n")

    for line in set(index):
        missing = index.count(line) - after.count(line)
        dead = (match := re.match(r"- \[(n\d)\]", line)) is not None and match[1] not in names
        assert missing <= 0 or dead, line
    again = plan_repair(with_index(memory, plan.data))
    assert again is None or again.changes == ()
