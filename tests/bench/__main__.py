"""`make bench`: measure, print the table, and end with 1 if a proof failed or something could not be measured.

A time that is over its bar is reported and decides nothing: machines differ.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from tests.bench import machine
from tests.bench.compare import compare
from tests.bench.registry import TOPICS
from tests.bench.report import report, short_line
from tests.bench.runner import run_all
from tests.bench.wire import BenchRun, TopicResult, load, save


def main() -> int:
    """Run the benchmarks that the command line names and return the exit code."""
    asked = _parser().parse_args()
    if asked.compare:
        print(compare(*map(load, asked.compare)))
        return 0
    if asked.show:
        print(report(load(asked.show)))
        return 0
    chosen = [topic for topic in TOPICS if not asked.topic or topic.name in asked.topic]
    progress = _Progress(len(chosen))
    run = BenchRun(machine.describe_machine(), run_all(chosen, progress))
    print(report(run))
    if asked.json:
        save(run, asked.json)
    return 1 if run.failed else 0


class _Progress:
    """Reports finished topics on standard error."""

    def __init__(self, topics: int) -> None:
        self._topics = topics
        self._done = 0
        self._began = time.monotonic()

    def __call__(self, measured: TopicResult) -> None:
        self._done += 1
        elapsed = time.monotonic() - self._began
        line = f"[{self._done:2}/{self._topics}  {elapsed:4.0f} s]  {short_line(measured)}"
        print(line, file=sys.stderr, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description="Measure what echod promises.")
    names = [topic.name for topic in TOPICS]
    parser.add_argument(
        "topic", nargs="*", choices=[*names, []], help=f"only these: {', '.join(names)}", metavar="TOPIC"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the run as JSON")
    parser.add_argument("--show", type=Path, metavar="FILE", help="measure nothing; print the table of a saved run")
    parser.add_argument(
        "--compare", nargs=2, type=Path, metavar=("OLD", "NEW"), help="measure nothing; compare two saved runs"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
