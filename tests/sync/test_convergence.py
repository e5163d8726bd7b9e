"""Three machines with random edits and exchanges in any order end with the same bytes, whatever is interrupted."""

from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from unittest.mock import patch

import pytest

from echod.app.services import Services, open_services
from echod.jobs import manual
from echod.jobs.base import JobDone, JobOutcome, JobResources
from echod.memory.document import parse
from echod.memory.identity import entry_ids
from echod.memory.model import Document
from echod.memory.policy import DEFAULT_POLICY, Rule, read_archive
from echod.paths import Paths
from echod.settings.values import Settings, SyncSettings
from echod.state.job import JobKind
from echod.store.changes import no_gate
from echod.store.layout import Role, find_stores
from echod.sync import repository as git_module
from echod.sync import repository as repository_module
from echod.sync.exchange import collect
from echod.sync.job import run_exchange
from echod.sync.repository import GitResult, MemoryRepository, RemoteSettings
from tests.sync.conftest import ECHO, entry, file_of

NOW = 1_795_000_000.0


class Crash(BaseException):
    """The process ends here."""


class Clone:
    """The memory of one machine, with echod's state beside it."""

    def __init__(self, root: Path, remote: Path, services: Services, paths: Paths) -> None:
        self.project, self.services = root / "project", services
        (self.project / ECHO).parent.mkdir(parents=True)
        (self.project / ECHO).write_text(file_of())
        self.repository = MemoryRepository(paths.memory_repository(self.project), dict(os.environ))
        self.repository.set_up(RemoteSettings(str(remote), "echod/project", "identity"))
        self.jobs = 0

    @property
    def role(self) -> Role:
        return Role(find_stores(self.project)[0], "reviewer")

    def resources(self) -> JobResources:
        self.jobs += 1
        services = self.services
        return JobResources(self.jobs, services.engine, services.entries, DEFAULT_POLICY, no_gate, lambda: NOW)

    def sync(self) -> JobOutcome:
        return run_exchange(self.project, self.repository, self.resources())

    @property
    def document(self) -> Document:
        document = parse((self.project / ECHO).read_bytes())
        assert isinstance(document, Document)
        return document

    def add(self, text: str) -> None:
        """Append an entry as an agent does."""
        old = (self.project / ECHO).read_text()
        (self.project / ECHO).write_text(old.rstrip("\n") + "\n\n" + text.rstrip("\n") + "\n")

    def edit(self, rng: random.Random, word: str) -> None:
        """Add a line to an entry."""
        blocks = [block.text for block in self.document.blocks]
        if blocks:
            chosen = rng.choice(blocks)
            changed = chosen.rstrip("\n") + f"\n- {word}\n\n"
            text = (self.project / ECHO).read_text()
            (self.project / ECHO).write_text(text.replace(chosen, changed))

    def remove(self, rng: random.Random, rule: Rule) -> str | None:
        """Move an entry to the archive, and return its title."""
        ids = [(i, b) for i, b in zip(entry_ids("reviewer", self.document), self.document.blocks, strict=True) if i]
        if not ids:
            return None
        chosen, block = rng.choice(ids)
        with self.resources().open_role(self.role) as context:
            assert isinstance(manual.forget(context, [chosen], rule=rule), JobDone)
        assert block.entry is not None
        return block.entry.title


@contextmanager
def clones(root: Path, number: int = 3) -> Iterator[list[Clone]]:
    remote = root / "remote.git"
    subprocess.run(["git", "init", "-q", "--bare", remote], check=True)
    with ExitStack() as stack:
        result = []
        for index in range(number):
            home = root / f"machine{index}"
            paths = Paths(home / "state", home / "run", home / "config.toml")
            services = stack.enter_context(open_services(paths, Settings(), {"HOME": str(home)}, lambda: NOW))
            result.append(Clone(home, remote, services, paths))
        yield result


def settle(machines: list[Clone]) -> None:
    for _ in range(2):
        for machine in machines:
            assert isinstance(machine.sync(), JobDone)


def run_history(root: Path, seed: int, steps: int) -> None:
    rng = random.Random(seed)
    with clones(root) as machines:
        added: set[str] = set()
        forgotten: set[str] = set()
        for step in range(steps):
            machine = rng.choice(machines)
            match rng.choice(["add", "add", "edit", "forget", "sync", "sync"]):
                case "add":
                    machine.add(entry(f"entry{step}", day=rng.randint(1, 28)))
                    added.add(f"entry{step}")
                case "edit":
                    machine.edit(rng, f"Edited in step {step}.")
                case "forget":
                    if (title := machine.remove(rng, Rule.FORGOTTEN)) is not None:
                        forgotten.add(title)
                case _:
                    assert isinstance(machine.sync(), JobDone)
        settle(machines)
        settle(machines)
        files = [collect(machine.project) for machine in machines]
        assert files[0] == files[1] == files[2], f"seed {seed}"
        titles = [block.entry.title for block in machines[0].document.blocks if block.entry]
        assert len(titles) == len(set(titles)), f"seed {seed}"
        assert set(titles) == added - forgotten, f"seed {seed}"
        archives = [read_archive(data) for path, data in files[0].items() if "/archive/" in path]
        text = "".join(item.text for archive in archives for item in archive.entries)
        assert all(f"Pattern: {title}\n" in text for title in forgotten), f"seed {seed}"
        assert not any(archive.damaged for archive in archives)
        assert all(isinstance(done := m.sync(), JobDone) and not done.changed for m in machines)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_machines_converge(tmp_path: Path, seed: int) -> None:
    run_history(tmp_path, seed, steps=25)


@pytest.mark.torture
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(100, 140))
def test_machines_converge_in_long_histories(tmp_path: Path, seed: int) -> None:
    run_history(tmp_path, seed, steps=80)


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_an_exchange_that_is_killed_before_or_after_any_call_of_git_is_completed_by_the_next(tmp_path: Path) -> None:
    calls = 0
    original = git_module.run_git

    def count(*arguments: object, **options: object) -> GitResult:
        nonlocal calls
        calls += 1
        return original(*arguments, **options)  # type: ignore[arg-type]

    def prepare(root: Path, machines: list[Clone]) -> None:
        root.mkdir(exist_ok=True)
        machines[0].add(entry("alpha"))
        machines[0].sync()
        machines[1].add(entry("beta", day=2))

    with clones(tmp_path / "counted", 2) as machines:
        prepare(tmp_path, machines)
        with patch.object(repository_module, "run_git", count):
            machines[1].sync()
    assert calls > 10
    for number in range(0, calls, 5):
        for after in (False, True):
            with clones(tmp_path / f"killed{number}{after}", 2) as machines:
                prepare(tmp_path, machines)
                kill_at(machines[1], number, after=after)
                machines[1].add(entry("gamma", day=3))
                settle(machines)
                assert collect(machines[0].project) == collect(machines[1].project)
                titles = sorted(block.entry.title for block in machines[0].document.blocks if block.entry)
                assert titles == ["alpha", "beta", "gamma"]


def kill_at(machine: Clone, number: int, *, after: bool) -> None:
    """Exchange, and end the process at one call of git, before or after git did its work."""
    seen = 0
    original = git_module.run_git

    def crash(*arguments: object, **options: object) -> GitResult:
        nonlocal seen
        seen += 1
        if seen == number + 1 and not after:
            raise Crash
        result = original(*arguments, **options)  # type: ignore[arg-type]
        if seen == number + 1:
            raise Crash
        return result

    with patch.object(repository_module, "run_git", crash), pytest.raises(Crash):
        machine.sync()


def test_the_service_exchanges_by_its_schedule_and_only_with_a_remote(tmp_path: Path) -> None:
    with clones(tmp_path, 1) as (machine,):
        context = machine.services.read_context
        assert context.need_settings(machine.project).sync_minutes == 0
        context.settings = Settings(sync=SyncSettings(minutes=30))
        assert context.need_settings(machine.project).sync_minutes == 30
        assert context.need_settings(tmp_path).sync_minutes == 0


def test_the_worker_runs_the_exchange_as_a_job(tmp_path: Path) -> None:
    from echod.scheduler.needs import find_needs

    with clones(tmp_path, 1) as (machine,):
        machine.add(entry("alpha"))
        services = machine.services
        services.read_context.settings = Settings(quiet_seconds=0, sync=SyncSettings(minutes=30))
        store = machine.role.store
        needs = find_needs(store, services.read_context.need_settings(machine.project), NOW).needs
        need = next(need for need in needs if need.kind is JobKind.SYNC)
        assert need.reason == "exchanged with its remote every 30 minutes"
        services.queue.put(need, NOW)
        os.utime(machine.project / ECHO, (NOW - 9999, NOW - 9999))
        finished = services.worker.run_next()
        assert finished is not None
        assert finished.outcome == JobDone("pushed", changed=False)
        services.queue.put(need, NOW)
        assert services.worker.run_next() is None
