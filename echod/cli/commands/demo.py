"""`echod demo`: the real service does its main job on a made-up project while the user watches.

Everything happens in one temporary directory. No file of the user is read or written, and nothing is left running.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from echod.cli.context import CommandContext
from echod.cli.output import wrap
from echod.errors import EchodError

ECHOD: Final = (sys.executable, "-m", "echod")
_TIMEOUT_SECONDS: Final = 30.0
_LONG_ROLE: Final = "planner"
_LONG_ENTRIES: Final = 48

MEMORY: Final = """\
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

FINDINGS: Final = {
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
- Factories are local to a test package.
- The staging database answers on postgres://shop:{value}@db.staging:5432/shop during the run.
""".format(value="tr0ub4dor" + "17"),
}


def demo(_context: CommandContext, *, keep: bool) -> None:
    """Run `echod demo`."""
    home = Path(tempfile.mkdtemp(prefix="echod-demo-"))
    try:
        _play(home)
    finally:
        if not keep:
            shutil.rmtree(home, ignore_errors=True)
    if keep:
        _show(f"Everything is in {home}. Remove it with: rm -r {home}")
    else:
        _show(wrap("Nothing is left: the service has stopped, and the directory is removed (--keep keeps it)."))
    _show("\nWith a project of your own, look first: echod add ~/src/my-project")


def _play(home: Path) -> None:
    """Play the story from findings to a recalled note."""
    environ = {
        **{name: value for name, value in os.environ.items() if not name.startswith("ECHOD_")},
        "ECHOD_STATE_DIR": str(home / "state"),
        "ECHOD_RUNTIME_DIR": str(home / "run"),
        "ECHOD_CONFIG": str(home / "config.toml"),
        "CLAUDE_CONFIG_DIR": str(home / "claude"),
        "HOME": str(home),
    }
    (home / "config.toml").write_text("quiet_seconds = 1\ndebounce_seconds = 0.5\n")
    project = _make_project(home)
    store = project / ".rune/echoes"
    memory = store / "reviewer/MEMORY.md"

    _say("A project with a memory that has grown too long. `echod add` shows what the first maintenance will do:")
    _echod(environ, project, "add", ".")
    with _service(environ, home), _workflow(project) as end_workflow:
        _say("The service runs. A review workflow is at work, and three agents leave findings:")
        for name, text in FINDINGS.items():
            (store / name).write_text(text)
            _show(f"  {name}")
        _until("the findings were noticed", lambda: _queue(environ, "deferred") >= len({"reviewer", "workers"}))
        _say("They are noticed, but nothing is written while the workflow runs:")
        _echod(environ, project, "status")
        _say("The workflow ends. A quiet second later the memory is written:")
        end_workflow()
        _until("the findings were consolidated", lambda: not list(store.glob("*/*-findings.md")))
        _show(textwrap.indent(memory.read_text().removeprefix(MEMORY), "  | "))
        _say("Of three findings, one was known already. In the other role a password is redacted:")
        _show(textwrap.indent((store / "workers/MEMORY.md").read_text(), "  | "))
        _until("the service is idle", lambda: _queue(environ, "running", "queued") == 0)
    _prune_and_undo(environ, project)
    _say("A note for all agents of the project, and a search that finds it:")
    _echod(environ, project, "remember", "Deploy with ./ship, not by hand: it migrates first.")
    _echod(environ, project, "search", "how do we deploy")


def _prune_and_undo(environ: Mapping[str, str], project: Path) -> None:
    """Prune the long memory file, explain one entry, and undo it."""
    memory = project / ".rune/echoes" / _LONG_ROLE / "MEMORY.md"
    before = memory.read_bytes()
    plan = _json(environ, "prune", str(project), "--dry-run")
    leaving = [entry["id"] for entry in plan["entries"] if entry["action"] != "keep"]
    _say("Why does an entry leave? `echod explain` begins with the answer:")
    _echod(environ, project, "explain", str(leaving[0]))
    _say("Prune the long file now. Whatever leaves is archived word for word:")
    _echod(environ, project, "prune", "--role", _LONG_ROLE, "--yes")
    sizes = [len(data.splitlines()) for data in (before, memory.read_bytes())]
    _show(f"  {_LONG_ROLE}/MEMORY.md: {sizes[0]} lines before, {sizes[1]} after\n")
    _say("And undo it:")
    _echod(environ, project, "undo", "--last", "--yes")
    if memory.read_bytes() != before:
        raise EchodError("The undo did not restore the file. This is a bug in echod; please report it.")
    digest = hashlib.sha256(before).hexdigest()[:10]
    _show(f"  The file is as it was, byte for byte (SHA-256 {digest}..., as before).")


def long_memory() -> str:
    """Return a memory file of observations that is far over its limit."""
    parts = ["<!-- echo-schema: v1 -->\n# Planner Memory\n"]
    modules = ("orders", "billing", "search", "mail")
    for number in range(_LONG_ENTRIES):
        module = modules[number % len(modules)]
        parts.append(
            f"\n### [2026-{1 + number % 9:02}-{1 + number % 27:02}] Pattern: {module.capitalize()} plan {number}\n"
            f"- **layer**: {'inscribed' if number % 8 == 0 else 'observations'}\n"
            f"- **source**: rune:plan {number:08x}\n- **confidence**: 0.6\n"
            f"- **evidence**: `shop/{module}/step_{number}.py:{number + 3}`\n"
            f"- Step {number} of the {module} plan took {number % 5 + 1} rounds, because its task named no file.\n"
        )
    return "".join(parts)


def _make_project(home: Path) -> Path:
    project = home / "shop"
    for role in ("reviewer", "workers", _LONG_ROLE):
        (project / ".rune/echoes" / role).mkdir(parents=True)
    (project / "tmp").mkdir()
    an_hour_ago = time.time() - 3600
    for role, text in (("reviewer", MEMORY), (_LONG_ROLE, long_memory())):
        memory = project / ".rune/echoes" / role / "MEMORY.md"
        memory.write_text(text)
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
            _until("the service came up", lambda: _json(environ, "status")["daemon"] is not None)
            yield
        finally:
            service.terminate()
            service.wait(_TIMEOUT_SECONDS)


def _json(environ: Mapping[str, str], *arguments: str) -> dict[str, Any]:
    done = subprocess.run([*ECHOD, *arguments, "--json"], env=environ, capture_output=True, text=True, check=False)
    try:
        found: dict[str, Any] = json.loads(done.stdout)
    except ValueError as error:
        raise EchodError(f"`echod {' '.join(arguments)}` failed in the demo: {done.stderr.strip()}") from error
    return found


def _queue(environ: Mapping[str, str], *states: str) -> int:
    queue = _json(environ, "status")["queue"]
    return sum(int(queue[state]) for state in states)


def _until(what: str, holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _TIMEOUT_SECONDS
    while not holds():
        if time.monotonic() > deadline:
            raise EchodError(f"The demo waited {_TIMEOUT_SECONDS:.0f} s in vain until {what}.")
        time.sleep(0.2)


def _echod(environ: Mapping[str, str], directory: Path, *arguments: str) -> None:
    """Show a command and run it in the project."""
    _show(f"$ echod {shlex.join(arguments)}")
    subprocess.run([*ECHOD, *arguments], env=environ, cwd=directory, check=False)
    _show("")


def _say(sentence: str) -> None:
    width = min(shutil.get_terminal_size().columns, 80)
    _show(f"\n{'-' * width}\n{textwrap.fill(sentence, width)}\n")


def _show(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
