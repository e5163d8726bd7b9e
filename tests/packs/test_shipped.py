"""The packs that ship: every one is a memory file that any reader of such files understands, and says what is checked.

What the packs say about frameworks was checked when they were written; what can be held to without a network is here.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import tomllib
from datetime import date
from pathlib import Path

import pytest

import echod
from echod.memory.document import parse
from echod.memory.model import Document, Entry, Form, Layer
from echod.memory.prompt_injection import find_injection
from echod.memory.redact import find_secrets

REPOSITORY = Path(__file__).parents[2]
DATA = Path(echod.__file__).parent / "packs/data"
REGISTRY = json.loads((DATA / "registry.json").read_text())
PACKS: dict[str, dict[str, object]] = REGISTRY["packs"]
STACKS = sorted(PACKS)

DOMAINS = {"backend", "frontend", "devops", "database", "testing", "architecture", "design", "general"}
CATEGORIES = {"pattern", "anti-pattern", "decision", "debugging", "general"}

# The reader that packs were first written for; it looks at lines alone and takes a heading in a code block for one.
INDEXED_HEADING = re.compile(r"^##\s+(Etched)\s*[—\-–]+\s*(.+?)\s*\((\d{4}-\d{2}-\d{2})\)$")

FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
DEPENDS_ON_A_VERSION = re.compile(
    r"\b(?:since|no longer|(?:is|are) (?:now|gone)|now|renamed|removed|deprecated|moved to|used to|formerly|new in)\b",
    re.IGNORECASE,
)
NAMES_A_VERSION = re.compile(
    r"\b\d+\.\d+\b|\bv\d+\b|\bversion \d+\b|\b(?:January|February|March|April|May|June|July|August|September|October|November|December) 20\d\d\b"
)


def text_of(stack: str) -> str:
    return (DATA / stack / "MEMORY.md").read_text(encoding="utf-8")


def document_of(stack: str) -> Document:
    parsed = parse((DATA / stack / "MEMORY.md").read_bytes())
    assert isinstance(parsed, Document)
    return parsed


def entries_of(stack: str) -> list[Entry]:
    return [block.entry for block in document_of(stack).blocks if block.entry]


def field_value(entry: Entry, name: str) -> str:
    return next(field.value for field in entry.fields if field.name == name)


def statements(text: str) -> list[str]:
    return [line for line in FENCE.sub("", text).splitlines() if line.startswith("- ")]


def is_vague(statement: str) -> bool:
    """Return whether a text mentions a change but no version; a word in code (`Date.now()`) does not count."""
    prose = re.sub(r"`[^`]*`", "", statement)
    return bool(DEPENDS_ON_A_VERSION.search(prose)) and not NAMES_A_VERSION.search(statement)


# The registry


def test_the_registry_names_exactly_the_packs_that_exist() -> None:
    assert {path.parent.name for path in DATA.glob("*/MEMORY.md")} == set(PACKS)
    assert {path.name for path in DATA.iterdir()} == {*PACKS, "registry.json"}


@pytest.mark.parametrize("stack", STACKS)
def test_a_stack_name_is_safe_in_a_path_and_on_a_command_line(stack: str) -> None:
    assert re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]{1,63}", stack)


@pytest.mark.parametrize("stack", STACKS)
def test_the_registry_has_every_field_that_its_readers_expect(stack: str) -> None:
    pack = PACKS[stack]

    assert set(pack) == {"name", "version", "last_updated", "description", "detectors", "domains"}
    assert re.fullmatch(r"\d+\.\d+\.\d+", str(pack["version"]))
    assert date.fromisoformat(str(pack["last_updated"])).isoformat() == pack["last_updated"]
    assert pack["name"]
    assert 0 < len(str(pack["description"])) <= 78, "a list shows it on a line of its own"


@pytest.mark.parametrize("stack", STACKS)
def test_a_detector_asks_for_a_file_or_for_a_pattern_in_one(stack: str) -> None:
    detectors = PACKS[stack]["detectors"]

    assert isinstance(detectors, list)
    assert detectors
    for detector in detectors:
        assert set(detector) in ({"file", "pattern"}, {"file", "exists"})
        assert Path(detector["file"]).name == detector["file"]
        assert detector.get("exists", True) is True
        re.compile(detector.get("pattern", ""))


@pytest.mark.parametrize("stack", STACKS)
def test_the_registry_lists_the_domains_of_the_entries_and_no_others(stack: str) -> None:
    domains = PACKS[stack]["domains"]

    assert isinstance(domains, list)
    assert set(domains) <= DOMAINS
    assert {field_value(entry, "domain") for entry in entries_of(stack)} == set(domains)


# The packs as memory files


@pytest.mark.parametrize("stack", STACKS)
def test_a_pack_renders_the_bytes_it_was_read_from(stack: str) -> None:
    assert document_of(stack).render() == (DATA / stack / "MEMORY.md").read_bytes()


@pytest.mark.parametrize("stack", STACKS)
def test_every_block_of_a_pack_is_an_etched_entry_in_the_pack_form(stack: str) -> None:
    document = document_of(stack)
    version = PACKS[stack]["version"]

    assert document.preamble.startswith("# ")
    assert "Doc Pack\n" in document.preamble
    assert len(document.blocks) >= 3
    for block in document.blocks:
        entry = block.entry
        assert entry is not None, block.text[:80]
        assert (entry.form, entry.layer) == (Form.LAYER_HEADING, Layer.ETCHED)
        assert entry.source == f"doc-pack:{stack}@{version}"
        assert entry.heading_date == date.fromisoformat(str(PACKS[stack]["last_updated"]))
        assert entry.title
        assert entry.evidence
        assert field_value(entry, "category") in CATEGORIES
        assert block.text[entry.body.start : entry.body.end].startswith("- ")


@pytest.mark.parametrize("stack", STACKS)
def test_an_entry_names_its_framework_and_its_title_is_its_own(stack: str) -> None:
    titles = [entry.title for entry in entries_of(stack)]

    assert len(set(titles)) == len(titles)
    assert len({title.partition(": ")[0] for title in titles}) == 1
    assert all(title.partition(": ")[2] for title in titles)


@pytest.mark.parametrize("stack", STACKS)
def test_a_reader_that_knows_lines_only_finds_the_same_entries(stack: str) -> None:
    lines = text_of(stack).splitlines()
    found = [number for number, line in enumerate(lines) if line.startswith("## ")]

    assert all(INDEXED_HEADING.match(lines[number]) for number in found)
    assert all(not lines[number - 1] for number in found), "it wants a blank line above a heading"
    assert len(found) == len(entries_of(stack))


@pytest.mark.parametrize("stack", STACKS)
def test_a_pack_is_short_enough_to_be_read_whole(stack: str) -> None:
    text = text_of(stack)

    assert 40 <= len(text.splitlines()) <= 90
    assert text.endswith("\n")
    assert "\r" not in text
    assert not re.search(r"[ \t]+$", text, re.MULTILINE)


@pytest.mark.parametrize("stack", STACKS)
def test_a_pack_holds_nothing_that_redaction_would_take_out(stack: str) -> None:
    assert find_secrets(text_of(stack)) == ()


@pytest.mark.parametrize("stack", STACKS)
def test_no_entry_of_a_pack_speaks_to_agents(stack: str) -> None:
    assert [find_injection(block.text) for block in document_of(stack).blocks if find_injection(block.text)] == []


@pytest.mark.parametrize("stack", STACKS)
def test_a_statement_that_depends_on_a_version_names_it(stack: str) -> None:
    assert [line for line in statements(text_of(stack)) if is_vague(line)] == []


@pytest.mark.parametrize("stack", STACKS)
def test_a_pack_names_the_version_it_was_checked_with(stack: str) -> None:
    assert NAMES_A_VERSION.search(document_of(stack).preamble)


# The samples


CLOSES = {")": "(", "]": "[", "}": "{"}
# Strings and comments of CSS and TypeScript; an apostrophe in JSX text would be read as a string and fail the check.
NOT_CODE = re.compile(r"""`(?:\\.|[^`\\])*`|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|/\*.*?\*/|//[^\n]*""", re.DOTALL)


def unbalanced(source: str) -> str | None:
    """Return the first bracket or quote without a partner, outside strings and comments; None if all have one."""
    open_brackets: list[str] = []
    for character in NOT_CODE.sub("", source):
        if character in CLOSES.values():
            open_brackets.append(character)
        elif character in "\"'`" or (
            character in CLOSES and (not open_brackets or open_brackets.pop() != CLOSES[character])
        ):
            return character
    return open_brackets[-1] if open_brackets else None


@pytest.mark.parametrize("stack", STACKS)
def test_every_fence_is_closed_and_names_its_language(stack: str) -> None:
    text = text_of(stack)

    assert text.count("```") == 2 * len(FENCE.findall(text))


@pytest.mark.parametrize("stack", STACKS)
def test_every_sample_parses(stack: str) -> None:
    for language, source in FENCE.findall(text_of(stack)):
        if language == "python":
            ast.parse(source)
        elif language == "json":
            json.loads(source)
        else:
            assert language in {"css", "ts", "tsx"}
            assert unbalanced(source) is None, source


@pytest.mark.parametrize(
    ("source", "culprit"),
    [
        ("a { color: red; }", None),
        ("f({ a: [1, 2] });", None),
        ('const close = ")"; // and (', None),
        ("/* { */ a {}", None),
        ("a { color: red;", "{"),
        ("f(]", "]"),
        ("f(a));", ")"),
        ("f(`https://example.com/${id}`);", None),
        ("f(`open);", "`"),
        ("const text = 'open;", "'"),
    ],
)
def test_an_unbalanced_sample_would_be_found(source: str, culprit: str | None) -> None:
    assert unbalanced(source) == culprit


@pytest.mark.parametrize(
    ("line", "vague"),
    [
        ("- Since 2.1 the driver is another.", False),
        ("- `gray-blue` is now `slate`.", True),
        ("- Toasts are deprecated since February 2025.", False),
        ("- An unlayered rule beats every utility.", False),
        ("- `Date.now()` blocks the prerender.", False),
    ],
)
def test_a_vague_statement_would_be_found(line: str, vague: bool) -> None:
    assert is_vague(line) is vague


# The wheel


def test_the_wheel_takes_the_packs_along() -> None:
    wheel = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]

    assert "echod" in wheel["packages"]
    assert not {"exclude", "include", "only-include"} & set(wheel), "then look whether the packs are still in it"
    assert DATA.is_relative_to(REPOSITORY / "echod")


@pytest.mark.skipif(not (REPOSITORY / ".git").exists(), reason="the wheel leaves out what git ignores; no git here")
def test_git_does_not_ignore_the_packs() -> None:
    files = [str(path) for path in DATA.rglob("*") if path.is_file()]

    ignored = subprocess.run(["git", "check-ignore", *files], cwd=REPOSITORY, capture_output=True, text=True)

    assert (ignored.returncode, ignored.stdout) == (1, "")
