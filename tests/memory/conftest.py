"""Fixtures of the core's tests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture
def corpus() -> Path:
    """The directory of real files; without it the test is skipped."""
    directory = os.environ.get("MEMORY_CORPUS")
    if not directory:
        pytest.skip("MEMORY_CORPUS is not set: no real files to read")
    return Path(directory)


@pytest.fixture
def corpus_files(corpus: Path) -> list[Path]:
    """Every Markdown file of the corpus."""
    files = sorted(corpus.rglob("*.md"))
    assert files, f"{corpus} holds no Markdown files"
    return files
