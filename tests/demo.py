"""`make demo`: the real service does its main job on a realistic project while the user watches.

Everything happens in one temporary directory, which is kept for a look around; nothing is left running.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

ECHOD = (sys.executable, "-m", "echod")
PATIENCE_SECONDS = 30.0

MEMORY = """\
<!-- echo-schema: v1 -->
# Reviewer Memory

### [2026-09-02] Architecture: Orders are written through the outbox
- **layer**: etched
- **source**: manual
- **confidence**: 1.0
- **evidence**: `shop/orders/outbox.py:12-40` - the only writer of the orders table
- **verified**: 2026-09-02
- **supersedes**: none
- Every state change of an order goes through the outbox table. Nothing else writes to `orders`.

## Inscribed — Review 41c09be2 (2026-10-14)

**Source**: `rune:review 41c09be2`
**Confidence**: HIGH (4 reviewers agreed)

1. **Money is in cents**: amounts are integers; the two places that used floats were both bugs.
2. **Retries need a key**: the payment client retries, so every call carries an idempotency key.
"""

FINDINGS = {
    "reviewer/ward-sentinel-findings.md": """\
### [2026-11-27] Pattern: Webhook handlers trust their input
- **layer**: inscribed
- **source**: rune:review 7be10d44
- **confidence**: 0.85
- **evidence**: `shop/webhooks/stripe.py:31-58` - the signature is checked after the body is parsed
- **verified**: 2026-11-27
- **supersedes**: none
- Webhook handlers parse the body before they check its signature. Check the signature first, on the raw bytes.
""",
    "reviewer/pattern-seer-findings.md": """\
Here is what I found while reviewing the branch:

## Timeouts are missing on outgoing calls
* Layer: inscribed
* Confidence: HIGH
* Evidence: `shop/clients/http.py:9`
* The shared HTTP client has no timeout, so one slow supplier blocks a worker for minutes.

### [2026-11-27] Architecture: Orders are written through the outbox
- **layer**: inscribed
- **evidence**: `shop/orders/outbox.py:12-40` - the only writer of the orders table
- Every state change of an order goes through the outbox table. Nothing else writes to `orders`.
""",
    "workers/smith-findings.md": """\
### [2026-11-27] Convention: Fixtures live next to their test
- **layer**: traced
- **confidence**: 0.6
- **evidence**: `tests/orders/conftest.py`
- Factories are local to a test package. The staging database answers on postgres://shop:{password}@db.staging:5432/shop during the run.
""".format(password="tr0ub4dor" + "17"),
}


def main() -> None:
    """Play the story from findings to memory."""
    home = Path(tempfile.mkdtemp(prefix="echod-demo-"))
    environ = {
        **{k: v for k, v in os.environ.items() if not k.startswith("ECHOD_")},
        "ECHOD_STATE_DIR": str(home / "state"),
        "ECHOD_RUNTIME_DIR": str(home / "run"),
        "ECHOD_CONFIG": str(home / "config.toml"),
        "CLAUDE_CONFIG_DIR": str(home / "claude"),
        "NO_COLOR": "1",
    }
    (home / "config.toml").write_text("quiet_seconds = 2\ndebounce_seconds = 0.5\n")
    project = _make_project(home)
    memory = project / ".rune/echoes/reviewer/MEMORY.md"

    _say(f"A project with a memory: {project}")
    _echod(environ, "add", str(project))
    with _service(environ, home), _workflow(project) as end_workflow:
        _say("The service runs. A review workflow is at work, and three agents leave findings:")
        for name, text in FINDINGS.items():
            (project / ".rune/echoes" / name).write_text(text)
            _show(f"  {name}")
        _until("the findings were noticed", lambda: _queue(environ, "deferred") == 2)
        _say("They were noticed, but nothing is written while the workflow runs:")
        _echod(environ, "gate", str(project))
        _echod(environ, "status")
        _say("The workflow ends. Two quiet seconds later the memory is written:")
        end_workflow()
        _until("the findings were consolidated", lambda: not _waiting(project))
        _show(textwrap.indent(memory.read_text().removeprefix(MEMORY), "  | "))
        _say("The duplicate was recognised, the password did not get in, and no findings file is left:")
        _show(textwrap.indent((project / ".rune/echoes/workers/MEMORY.md").read_text(), "  | "))
        _echod(environ, "jobs")
        _until("the status is calm again", lambda: _queue(environ, "deferred", "queued", "running") == 0)
        _echod(environ, "status")
    _say("The service has stopped; nothing is left running. Look around:")
    _show(f"  {project / '.rune/echoes'}   the store, with what the agents wrote under archive/findings/")
    _show(f"  {home / 'state'}   echod's own state: the queue and the journal")
    _show(f"  {home / 'service.log'}   what the service logged")
    _show(f"Remove it all with: rm -r {home}")


def _make_project(home: Path) -> Path:
    project = home / "shop"
    for role in ("reviewer", "workers"):
        (project / ".rune/echoes" / role).mkdir(parents=True)
    (project / "tmp").mkdir()
    memory = project / ".rune/echoes/reviewer/MEMORY.md"
    memory.write_text(MEMORY)
    an_hour_ago = time.time() - 3600
    os.utime(memory, (an_hour_ago, an_hour_ago))
    return project


@contextlib.contextmanager
def _workflow(project: Path) -> Iterator[Callable[[], None]]:
    """A workflow with a live owner; the yielded function ends it the way the plugin does."""
    marker = project / "tmp/.rune-review-7be10d44.json"
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)"]) as owner:
        state = {"team_name": "rune-review-7be10d44", "status": "active", "owner_pid": str(owner.pid)}
        marker.write_text(json.dumps(state))

        def end() -> None:
            marker.write_text(json.dumps({**state, "status": "completed"}))

        try:
            yield end
        finally:
            owner.kill()


@contextlib.contextmanager
def _service(environ: Mapping[str, str], home: Path) -> Iterator[None]:
    with (home / "service.log").open("w") as log, subprocess.Popen([*ECHOD, "run"], env=environ, stderr=log) as service:
        try:
            _until("the service came up", lambda: _status(environ)["daemon"] is not None)
            yield
        finally:
            service.terminate()
            service.wait(PATIENCE_SECONDS)


def _status(environ: Mapping[str, str]) -> dict[str, object]:
    done = subprocess.run([*ECHOD, "status", "--json"], env=environ, capture_output=True, text=True, check=False)
    found: dict[str, object] = json.loads(done.stdout)
    return found


def _queue(environ: Mapping[str, str], *states: str) -> int:
    queue = _status(environ)["queue"]
    assert isinstance(queue, dict)
    return sum(int(queue[state]) for state in states)


def _waiting(project: Path) -> list[Path]:
    return list((project / ".rune/echoes").glob("*/*-findings.md"))


def _until(what: str, holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        if time.monotonic() > deadline:
            sys.exit(f"The demonstration waited {PATIENCE_SECONDS:.0f} s in vain until {what}.")
        time.sleep(0.2)


def _echod(environ: Mapping[str, str], *arguments: str) -> None:
    _show(f"$ echod {' '.join(arguments)}")
    subprocess.run([*ECHOD, *arguments], env=environ, check=False)
    _show("")


def _say(sentence: str) -> None:
    width = min(shutil.get_terminal_size().columns, 80)
    _show(f"\n{'-' * width}\n{textwrap.fill(sentence, width)}\n")


def _show(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
