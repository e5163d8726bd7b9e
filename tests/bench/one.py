"""Measure one topic, in a process of its own: nothing that ran before weighs on it, and it can be ended."""

from __future__ import annotations

import importlib
import json
import os
import sys
from pathlib import Path

from echod import log_setup
from tests.bench.wire import figures_to_dict
from tests.bench.workspace import Workspace


def main() -> None:
    """Take the topic's name, the file for its figures, and the two directories of its workspace."""
    name, *paths = sys.argv[1:]
    log_setup.configure("warning", sys.stderr, os.environ)
    into, disk, memory = map(Path, paths)
    figures = importlib.import_module(f"tests.bench.topics.{name}").measure(Workspace(disk, memory))
    into.write_text(json.dumps(figures_to_dict(figures)))


if __name__ == "__main__":
    main()
