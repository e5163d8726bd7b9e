"""Hundreds of transcripts with every known oddity: no crash, every typed prompt, nothing twice, no secret."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from tests.sessions.conftest import Archives
from tests.sessions.generator import ODDITIES, MadeTranscript, make_transcripts
from tests.support import corpus

_NUMBER = 320


def squeezed(text: str) -> str:
    return re.sub(r"\s+", " ", text)


@pytest.mark.slow
def test_every_transcript_is_archived_whole_once_and_without_secrets(
    archives: Archives, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", lambda _descriptor: None)
    made = list(make_transcripts(_NUMBER))
    assert {kind for one in made for kind in one.kinds} == {oddity.__name__ for oddity in ODDITIES}

    for one in made:
        outcome = archives.archive(one.write(tmp_path / "projects"))
        assert outcome.archive is not None, outcome
        check_archive(one, archives.text(outcome.archive))
        assert outcome.receipt is not None
        assert outcome.receipt.source_bytes <= sum(map(len, (*one.lines, *one.files.values())))

    before = archives.files()
    for one in made:
        assert archives.archive(tmp_path / "projects" / f"{one.session}.jsonl").archive is None
    assert archives.files() == before


@pytest.mark.corpus
def test_the_real_transcripts_are_archived_whole_and_once(archives: Archives) -> None:
    paths = sorted(corpus("recall-echo").glob("*.jsonl"))
    assert paths

    for path in paths:
        outcome = archives.archive(path)
        assert outcome.archive is not None
        body = squeezed(archives.text(outcome.archive).partition("\n# Conversation ")[2])
        for prompt in typed_prompts(path):
            assert body.count(squeezed(prompt)) == 1
        assert archives.archive(path).archive is None


def typed_prompts(path: Path) -> list[str]:
    """Return what a user typed, read without the code under test: texts that are no meta text and no wrapper."""
    found = []
    for line in path.read_text().splitlines():
        record = json.loads(line) if line.startswith("{") else {}
        message = record.get("message") if isinstance(record, dict) else None
        if not isinstance(message, dict) or message.get("role") != "user" or record.get("isMeta"):
            continue
        if record.get("isSidechain") or record.get("isCompactSummary"):
            continue
        content = message.get("content")
        blocks: Any = [{"type": "text", "text": content}] if isinstance(content, str) else content
        found += [
            block["text"]
            for block in blocks
            if isinstance(block, dict) and block.get("type") == "text" and not block["text"].startswith(("<", "Caveat"))
        ]
    return found


def check_archive(made: MadeTranscript, text: str) -> None:
    body = squeezed(text[text.index("\n# Conversation ") :])
    for prompt in made.prompts:
        assert body.count(squeezed(prompt)) >= 1, f"lost: {prompt!r} of {made.session}"
    for prompt in made.prompts:
        # The tags may repeat a sentence, the messages may not.
        messages = body.split("## Tags")[0]
        assert messages.count(squeezed(prompt)) == 1, f"twice: {prompt!r} of {made.session}"
    for note in made.sub_agents:
        assert body.split("## Tags")[0].count(squeezed(note)) == 1, f"sub-agent: {note!r} of {made.session}"
    for note in made.injected:
        assert note not in text, f"injected: {note!r} of {made.session}"
    for secret in made.secrets:
        assert secret not in text, f"secret: {secret!r} of {made.session}"
