"""A search for a name, a time, a size, a link or a content, in any file that echod looks at, that stops anything."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from echod.app.services import open_services
from echod.clock import local_date
from echod.contract.codec import to_json
from echod.contract.status import StatusReport, status_from_json
from echod.inspection import load_inspections
from echod.paths import paths_from_environment
from echod.projects.discovery import discover_stores
from echod.projects.settings import read_project_settings
from echod.runtime.heartbeat import read_heartbeat
from echod.runtime.locks import parse_lock_owner
from echod.scheduler.reconcile import reconcile
from echod.settings.schema import Settings
from echod.status.collect import StatusCollector
from tests.support import Home, finding_text, make_project

PLACES = (
    ".rune", ".rune/echoes", ".rune/echoes/reviewer", ".rune/echoes/reviewer/MEMORY.md",
    ".rune/echoes/reviewer/knowledge.md", ".rune/echoes/reviewer/ash-findings.md", ".rune/echoes/reviewer/archive",
    ".rune/echoes/reviewer/quarantine", ".rune/talisman.yml", ".git", ".git/HEAD", ".git/index", ".git/packed-refs",
    ".git/commondir", "tmp", "tmp/.rune-work-1.json", "tmp/.rune-signals", ".gitignore",
    ".rune/arc/arc-1/checkpoint.json", ".rune/arc-phase-loop.local.md",
)  # fmt: skip
TEXTS = st.text(st.characters(exclude_characters="/\0", codec="utf-8"), min_size=1, max_size=40)
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), TEXTS, st.sampled_from([10**400, "9999-12-31", "0", "null"])
)
JSON = st.recursive(SCALARS, lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(TEXTS, inner)))
FIELDS = st.dictionaries(
    st.sampled_from(["status", "started_at", "owner_pid", "session_id", "updated", "phases", "schema_version"]), JSON
)
CONTENTS = st.one_of(
    st.binary(max_size=200),
    JSON.map(lambda value: json.dumps(value).encode()),
    FIELDS.map(lambda value: json.dumps(value).encode()),
    st.sampled_from(
        [b"[" * 50_000, b"gitdir: .git\n", b"gitdir: " + b"a/" * 30_000, b"ref: refs/heads/x\n", b"\xff\xfe"]
    ),
    st.sampled_from([b"echoes: &a [*a]\n", b"echoes:\n  memory_line_limit: 9" + b"9" * 5_000, b"{" * 9_000]),
    TEXTS.map(lambda text: finding_text(" ".join(text.split()) or "x").encode()),
)
SHAPES = st.one_of(
    st.tuples(st.just("file"), CONTENTS),
    st.tuples(
        st.just("link"), st.sampled_from(["loop", ".", "..", "/", "/dev/zero", "/proc/self/mem", "gone", "a/" * 60])
    ),
    st.tuples(st.just("fifo"), st.just("")),
    st.tuples(st.just("directory"), TEXTS),
    st.tuples(st.just("absent"), st.just("")),
)
TIMES = st.sampled_from([None, 0, -1, 10**9, 2**31, 2**33, 253_402_300_800, 10**12, 2**40])
CHANGES = st.lists(st.tuples(st.sampled_from(PLACES), SHAPES, TIMES), min_size=1, max_size=4)


def apply(root: Path, place: str, shape: tuple[str, object], at: int | None) -> None:
    path, (kind, value) = root / place, shape
    with suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        match kind:
            case "file":
                assert isinstance(value, bytes)
                path.write_bytes(value)
            case "link":
                path.symlink_to(path.name if value == "loop" else str(value))
            case "fifo":
                os.mkfifo(path)
            case "directory":
                (path / str(value)).mkdir(parents=True)
        if at is not None:
            os.utime(path, (at, at), follow_symlinks=False)


def look_at_everything(home: Home, root: Path, innocent: Path) -> StatusReport:
    own = paths_from_environment(home.environ)
    own.create_directories()
    now = 1_795_000_000.0
    with open_services(own, Settings(), home.environ, lambda: now) as services:
        context = services.read_context
        discovered = discover_stores([root, innocent], context.locator)
        services.inbox.refresh(now, [root, innocent])
        for store in discovered.stores:
            need_settings = context.need_settings(store.project)
            reconcile(store, need_settings, services.queue, now, services.inbox, services.maintenance_finder)
        while services.worker.run_next() is not None:
            pass
        collector = StatusCollector(context)
        collector.inspect(discovered.stores, now)
        collector.inspect_packs(now)
        return collector.report(discovered, now)


@pytest.fixture(scope="module")
def space() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="echod-fuzz-") as directory:
        yield Path(directory)


def check_that_nothing_stops(space: Path, changes: list[tuple[str, tuple[str, object], int | None]]) -> None:
    base = Path(tempfile.mkdtemp(dir=space))
    root, innocent = make_project(base / "bad"), make_project(base / "innocent")
    for project in (root, innocent):
        (project / ".rune/echoes/reviewer/MEMORY.md").write_text(finding_text("Money is in cents"))
    zebra = innocent / ".rune/echoes/reviewer/ash-findings.md"
    zebra.write_text(finding_text("Zebra stripes are counted"))
    os.utime(zebra, (1_700_000_000, 1_700_000_000))
    os.utime(innocent / ".rune/echoes/reviewer/MEMORY.md", (1_700_000_000, 1_700_000_000))
    for place, shape, at in changes:
        apply(root, place, shape, at)

    report = look_at_everything(Home(base / "home"), root, innocent)

    assert str(innocent) in to_json(report)
    assert "Zebra" in (innocent / ".rune/echoes/reviewer/MEMORY.md").read_text()
    shutil.rmtree(base, ignore_errors=True)


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(CHANGES)
def test_no_file_of_a_project_stops_another(
    space: Path, changes: list[tuple[str, tuple[str, object], int | None]]
) -> None:
    check_that_nothing_stops(space, changes)


@pytest.mark.fuzz
@pytest.mark.timeout(1800)
@settings(max_examples=1500, deadline=None, suppress_health_check=list(HealthCheck))
@given(CHANGES)
def test_no_file_of_a_project_stops_another_long(
    space: Path, changes: list[tuple[str, tuple[str, object], int | None]]
) -> None:
    check_that_nothing_stops(space, changes)


@settings(max_examples=60, deadline=None)
@given(CONTENTS)
def test_no_content_of_an_own_cache_raises(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory, "file")
        file.write_bytes(content)

        read_heartbeat(file)
        parse_lock_owner(content)
        load_inspections(file).inspect(Path(directory, "MEMORY.md"))
        with suppress(ValueError):
            status_from_json(content.decode(errors="replace"))
        read_project_settings(Path(directory))


@given(st.one_of(st.floats(), st.integers(-(10**30), 10**30)))
def test_every_moment_has_a_day(moment: float) -> None:
    assert 1900 <= local_date(moment).year <= 9999
