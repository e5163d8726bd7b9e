"""The page on redaction lists every kind, and real memory files contain none of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from echod.memory.redact import find_secrets
from echod.memory.redact.patterns import CREDENTIAL_PATTERNS, TOKEN_PATTERNS

PAGE = Path(__file__).parents[2] / "docs" / "security.md"
BY_NAME = {"password", "secret", "token", "api-key", "aws-secret-key", "private-key"}


def test_the_page_lists_every_kind_and_no_other() -> None:
    table = re.findall(r"^\| `([a-z-]+)` \|", PAGE.read_text(), re.MULTILINE)

    kinds = {shape.kind for shape in TOKEN_PATTERNS} | {place.kind for place in CREDENTIAL_PATTERNS} | BY_NAME
    assert sorted(table) == sorted(kinds | {"connection-string", "email"})


def test_the_page_itself_holds_no_secret() -> None:
    assert find_secrets(PAGE.read_text()) == ()


@pytest.mark.corpus
def test_nothing_is_redacted_in_real_memory_files(corpus_files: list[Path]) -> None:
    redacted = [
        (path.name, secret.kind, text.count("\n", 0, secret.start) + 1)
        for path in corpus_files
        for text in [path.read_text()]
        for secret in find_secrets(text)
    ]

    assert redacted == []
