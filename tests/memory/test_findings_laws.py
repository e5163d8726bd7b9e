"""Laws for every findings file: no word is lost, nothing crashes, a copy keeps its keys."""

from __future__ import annotations

import re
from collections import Counter
from datetime import date

from hypothesis import given, settings
from hypothesis import strategies as st

from echod.memory.findings import Finding, read_findings
from echod.memory.model import Unreadable
from tests.memory.loose_findings import files

FILE_DATE = date(2026, 3, 1)


def read(text: str, *, agent: str = "scout", file_date: date = FILE_DATE) -> tuple[Finding, ...]:
    found = read_findings(text.encode(), agent=agent, file_date=file_date)
    assert not isinstance(found, Unreadable), found.reason
    return found


def words_of(findings: tuple[Finding, ...]) -> Counter[str]:
    said: list[str] = []
    for one in findings:
        said += [one.title, one.kind or "", one.source, one.evidence or "", one.supersedes or "", one.text]
        said += [value for _, value in one.fields]
    return Counter(re.findall(r"word\d+", " ".join(said)))


@settings(max_examples=200, deadline=None)
@given(files())
def test_no_word_is_dropped(text: str) -> None:
    wanted = set(re.findall(r"word\d+", text))

    assert wanted - set(words_of(read(text))) == set()


@settings(max_examples=80, deadline=None)
@given(files())
def test_a_word_of_the_text_is_in_one_finding_only(text: str) -> None:
    texts = Counter(re.findall(r"word\d+", "\n".join(one.text for one in read(text))))

    assert not [word for word, count in texts.items() if count > 1]


@settings(max_examples=80, deadline=None)
@given(files())
def test_a_copy_with_another_date_holds_the_same_findings(text: str) -> None:
    now = [(one.key, one.title, one.text) for one in read(text)]
    later = [(one.key, one.title, one.text) for one in read(text, file_date=date(2027, 1, 1))]

    assert now == later


def test_the_name_of_a_finding_outlives_the_program() -> None:
    # The ledger is kept on disk: another release must find the same name for the same words.
    one = read("## Inscribed — One (2026-02-11)\n**Tags**: a\n**Confidence**: 0.8\n\nFirst.\n")[0]

    assert one.key == "94b1209f7b0e2e86c70f4a0f3f2a95fb"


def test_two_agents_with_the_same_words_have_two_findings() -> None:
    one, other = (read("## One\nFirst.\n", agent=agent)[0] for agent in ("scout", "reviewer"))

    assert one.key != other.key


@settings(max_examples=100, deadline=None)
@given(st.text(alphabet=st.sampled_from("#-*_`~<!>[](): \t\n\r=|+1.aZé漢\u00a0\u200b\ufeff"), max_size=200))
def test_any_text_is_read(text: str) -> None:
    for one in read(text):
        assert one.title
        assert "\n" not in one.title + (one.evidence or "") + one.source
        assert one.text == "" or one.text.strip()


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=100))
def test_any_bytes_have_an_answer(data: bytes) -> None:
    found = read_findings(data, agent="scout", file_date=FILE_DATE)

    assert isinstance(found, (tuple, Unreadable))
