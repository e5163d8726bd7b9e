"""Hundreds of transcripts with every known oddity: no crash, every typed prompt, nothing twice, no secret."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests.sessions.conftest import Archives
from tests.sessions.generator import ODDITIES, MadeTranscript, make_transcripts

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
        assert outcome.receipt.source_bytes <= sum(map(len, one.lines))

    before = archives.files()
    for one in made:
        assert archives.archive(tmp_path / "projects" / f"{one.session}.jsonl").archive is None
    assert archives.files() == before


def check_archive(made: MadeTranscript, text: str) -> None:
    body = squeezed(text[text.index("\n# Conversation ") :])
    for prompt in made.prompts:
        assert body.count(squeezed(prompt)) >= 1, f"lost: {prompt!r} of {made.session}"
    for prompt in made.prompts:
        # The tags may repeat a sentence, the messages may not.
        messages = body.split("## Tags")[0]
        assert messages.count(squeezed(prompt)) == 1, f"twice: {prompt!r} of {made.session}"
    for note in made.injected:
        assert note not in text, f"injected: {note!r} of {made.session}"
    for secret in made.secrets:
        assert secret not in text, f"secret: {secret!r} of {made.session}"
