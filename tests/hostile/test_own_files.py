"""Fake secrets in the tests are split, so that no scanner takes a file of the project for a leak."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from echod.memory.redact import find_secrets

ROOT = Path(__file__).parents[2]
FOLDERS = ("echod", "tests", "docs", "systemd", "launchd", ".ci")
EXAMPLES = frozenset({"password", "connection-string"})
"""Allowed in tests: values that are secrets only by their name, `hunter2` and templates of URLs."""
ALLOWED = {
    "tests/memory/test_redact_named.py",
    "tests/memory/test_redact_evidence.py",
    "tests/bench/secrets/field.py",
}
"""The tables of examples of the rules that go by names."""


def texts() -> Iterator[tuple[str, str]]:
    """Return every text file of the project, by its path."""
    found = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if "__pycache__" not in path.parts]
    for path in (*found, *ROOT.glob("*.*"), ROOT / "Makefile"):
        if path.is_file() and path.suffix in {".py", ".md", ".toml", ".json", ".sh", ".service", ".plist", ".yml"}:
            yield path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8", errors="replace")


@pytest.mark.parametrize("part", ["echod", "tests/", "docs", ""], ids=["product", "tests", "documents", "others"])
def test_no_file_contains_a_text_like_a_leaked_secret(part: str) -> None:
    mine = [(name, text) for name, text in texts() if _part(name) == part and name not in ALLOWED]
    allowed = EXAMPLES if part == "tests/" else frozenset[str]()

    found = [
        f"{name}:{text.count(chr(10), 0, secret.start) + 1} {secret.kind}"
        for name, text in mine
        for secret in find_secrets(text)
        if secret.kind not in allowed
    ]

    assert mine
    assert found == []


def _part(name: str) -> str:
    return next((part for part in ("echod", "tests/", "docs") if name.startswith(part)), "")
