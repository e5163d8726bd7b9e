"""Three machines with random edits and exchanges in any order end with the same bytes, whatever is interrupted."""

from __future__ import annotations

import os
import random
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from unittest.mock import patch

import pytest

from echod.app.services import Services, open_services
from echod.jobs import manual, prune
from echod.jobs.base import JobDone, JobOutcome, JobResources
from echod.memory.archive import read_archive
from echod.memory.document import parse
from echod.memory.identity import entry_ids
from echod.memory.model import Document
from echod.memory.policy_model import DEFAULT_POLICY, PolicySettings, Rule
from echod.paths import Paths
from echod.settings.schema import Settings, SyncSettings
from echod.state.database import Database
from echod.state.entries import EntryStore
from echod.state.jobs import JobKind
from echod.store.changes import no_gate
from echod.store.commit.context import CommitStep
from echod.store.engine import Engine
from echod.store.errors import EngineLimits
from echod.store.layout import Role, find_stores
from echod.sync import repository as git_module
from echod.sync import repository as repository_module
from echod.sync.exchange import collect
from echod.sync.job import run_exchange
from echod.sync.repository import BASE, PUSHING, GitResult, MemoryRepository, RemoteSettings
from tests.support import run_in_child
from tests.sync.conftest import ECHO, entry, file_of

pytestmark = pytest.mark.slow

NOW = 1_795_000_000.0


class Crash(BaseException):
    """The process ends here."""


class FastRepository(MemoryRepository):
    """A repository and its remote without processes of git, for many histories. `branches` and `commits` are shared."""

    branches: dict[str, str]
    commits: dict[str, tuple[str | None, dict[str, bytes]]]

    def __init__(self, remote: FastRepository | None) -> None:
        super().__init__(Path("/nowhere"), {})
        self.branches, self.commits = ({}, {}) if remote is None else (remote.branches, remote.commits)
        self._references: dict[str, str] = {}

    @property
    def settings(self) -> RemoteSettings:
        return RemoteSettings("remote", "echod/project", "identity")

    def fetch(self, settings: RemoteSettings) -> str | None:
        return self.branches.get(settings.branch)

    def push(self, settings: RemoteSettings, commit: str) -> bool:
        self._references[PUSHING] = commit
        if self.commits[commit][0] != self.branches.get(settings.branch):
            return False
        self.branches[settings.branch] = commit
        return True

    def find_base(self, commit: str) -> str | None:
        line = list(self._ancestors(commit))
        known = (self._references.get(name) for name in (PUSHING, BASE))
        return next((name for name in known if name in line), None)

    def was_rewritten(self, commit: str) -> bool:
        return BASE in self._references and self._references[BASE] not in list(self._ancestors(commit))

    def read(self, commit: str | None) -> dict[str, bytes]:
        return {} if commit is None else dict(self.commits[commit][1])

    def commit(self, files: Mapping[str, bytes], parent: str | None, at: float) -> str | None:
        after = {**self.read(parent), **files}
        if parent and after == self.read(parent):
            return None
        name = f"{len(self.commits)}"
        self.commits[name] = (parent, after)
        return name

    def resolve(self, reference: str) -> str | None:
        return self._references.get(reference)

    def record_exchange(self, commit: str) -> None:
        self._references[BASE] = commit
        self._references.pop(PUSHING, None)

    def _ancestors(self, commit: str | None) -> Iterator[str]:
        while commit is not None:
            yield commit
            commit = self.commits[commit][0]


class Clone:
    """The memory of one machine, with echod's state beside it."""

    def __init__(self, root: Path, repository: MemoryRepository, services: Services, paths: Paths) -> None:
        self.project, self.services, self.repository, self.paths = root / "project", services, repository, paths
        (self.project / ECHO).parent.mkdir(parents=True)
        (self.project / ECHO).write_text(file_of())
        self.jobs = 0

    @property
    def role(self) -> Role:
        return Role(find_stores(self.project)[0], "reviewer")

    def resources(self, policy: PolicySettings = DEFAULT_POLICY) -> JobResources:
        self.jobs += 1
        services = self.services
        return JobResources(self.jobs, services.engine, services.entries, policy, no_gate, lambda: NOW)

    def sync(self) -> JobOutcome:
        return run_exchange(self.project, self.repository, self.resources())

    def checked_sync(self, label: str) -> None:
        """Exchange, and check that no line of this machine or of the remote is lost."""
        repository = self.repository
        before, base = collect(self.project), repository.read(repository.resolve(BASE))
        remote = repository.read(repository.fetch(repository.settings)) if repository.settings else {}
        assert isinstance(done := self.sync(), JobDone), (label, done)
        after = _lines(collect(self.project))
        assert _lines(before) <= after, (label, _lines(before) - after)
        assert _lines(remote) - _lines(base) <= after, (label, _lines(remote) - _lines(base) - after)

    @property
    def document(self) -> Document:
        document = parse((self.project / ECHO).read_bytes())
        assert isinstance(document, Document)
        return document

    def add(self, text: str) -> None:
        """Append an entry as an agent does."""
        old = (self.project / ECHO).read_text()
        (self.project / ECHO).write_text(old.rstrip("\n") + "\n\n" + text.rstrip("\n") + "\n")

    def edit(self, rng: random.Random, change: Callable[[str], str]) -> None:
        """Change the text of an entry."""
        blocks = [block.text for block in self.document.blocks]
        if blocks:
            chosen = rng.choice(blocks)
            text = (self.project / ECHO).read_text()
            (self.project / ECHO).write_text(text.replace(chosen, change(chosen)))

    def reverse(self) -> None:
        """Put the entries into the opposite order."""
        document = self.document
        texts = [block.text.rstrip("\n") + "\n\n" for block in reversed(document.blocks)]
        (self.project / ECHO).write_text("".join([document.preamble, *texts]).rstrip("\n") + "\n")

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

    def prune(self, lines: int) -> None:
        """Run the prune job with room for so many lines."""
        self.services.entries.release_first_prune(self.role.store.key, [self.role.name])
        policy = DEFAULT_POLICY._replace(memory_line_limit=lines)
        with self.resources(policy).open_role(self.role) as context:
            assert isinstance(outcome := prune.run(context), JobDone), outcome


def _append(line: str, text: str) -> str:
    return f"{text.rstrip()}\n{line}\n\n"


def _lines(files: Mapping[str, bytes]) -> set[str]:
    """Return the lines of files, without those that only echod writes."""
    lines = {line.strip() for data in files.values() for line in data.decode().splitlines()}
    return {line for line in lines if line and not line.startswith(("<!-- echod", "{", "- **verified**"))}


@contextmanager
def clones(root: Path, number: int = 3, *, fast: bool = False) -> Iterator[list[Clone]]:
    remote = root / "remote.git"
    if not fast:
        subprocess.run(["git", "init", "-q", "--bare", remote], check=True)
    with ExitStack() as stack:
        result: list[Clone] = []
        shared = FastRepository(None)
        for index in range(number):
            home = root / f"machine{index}"
            paths = Paths(home / "state", home / "run", home / "config.toml")
            services = stack.enter_context(open_services(paths, Settings(), {"HOME": str(home)}, lambda: NOW))
            repository: MemoryRepository = FastRepository(shared)
            if not fast:
                repository = MemoryRepository(paths.memory_repository(home / "project"), dict(os.environ))
                repository.set_up(RemoteSettings(str(remote), "echod/project", "identity"))
            result.append(Clone(home, repository, services, paths))
        yield result


def settle(machines: list[Clone], label: str = "") -> None:
    for _ in range(2):
        for machine in machines:
            machine.checked_sync(label)


_ACTIONS = ("add", "add", "add", "edit", "rewrite", "forget", "prune", "delete", "move", "sync", "sync", "sync")


def run_history(root: Path, seed: int, steps: int, *, fast: bool = False) -> None:
    """Let three machines do random things, and check that they end with the same bytes and lost nothing."""
    rng = random.Random(seed)
    with clones(root, fast=fast) as machines:
        added: set[str] = set()
        forgotten: set[str] = set()
        for step in range(steps):
            machine = rng.choice(machines)
            label = f"seed {seed}, step {step}"
            match rng.choice(_ACTIONS):
                case "add":
                    machine.add(entry(f"entry{step}", day=rng.randint(1, 28)))
                    added.add(f"entry{step}")
                case "edit":
                    machine.edit(rng, partial(_append, f"- Edited in step {step}."))
                case "rewrite":
                    machine.edit(rng, partial(re.sub, "Always.*", f"Rewritten in step {step}."))
                case "delete":
                    machine.edit(rng, lambda _: "")
                case "move":
                    machine.reverse()
                case "prune":
                    machine.prune(rng.choice([20, 30, 40]))
                case "forget":
                    if (title := machine.remove(rng, Rule.FORGOTTEN)) is not None:
                        forgotten.add(title)
                case _:
                    machine.checked_sync(label)
        settle(machines, f"seed {seed}, end")
        settle(machines, f"seed {seed}, end")
        files = [collect(machine.project) for machine in machines]
        assert files[0] == files[1] == files[2], f"seed {seed}"
        titles = [block.entry.title for block in machines[0].document.blocks if block.entry]
        assert len(titles) == len(set(titles)), f"seed {seed}"
        assert not set(titles) & forgotten, f"seed {seed}"
        archives = [read_archive(data) for path, data in files[0].items() if "/archive/" in path]
        text = "".join(item.text for archive in archives for item in archive.entries)
        assert all(f"Pattern: {title}\n" in text for title in forgotten), f"seed {seed}"
        assert not any(archive.damaged for archive in archives)
        assert all(isinstance(done := m.sync(), JobDone) and not done.changed for m in machines)


@pytest.mark.parametrize("seed", range(2))
def test_machines_converge_and_lose_no_line(tmp_path: Path, seed: int) -> None:
    run_history(tmp_path, seed, steps=40, fast=True)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_machines_with_git_converge(tmp_path: Path, seed: int) -> None:
    run_history(tmp_path, seed, steps=25)


@pytest.mark.torture
@pytest.mark.timeout(7_200)
@pytest.mark.parametrize("first", range(1000, 2000, 100))
def test_machines_converge_in_a_thousand_histories(tmp_path: Path, first: int) -> None:
    for seed in range(first, first + 100):
        run_history(tmp_path / f"{seed}", seed, steps=60, fast=True)
        shutil.rmtree(tmp_path / f"{seed}")


@pytest.mark.torture
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(100, 140))
def test_machines_with_git_converge_in_long_histories(tmp_path: Path, seed: int) -> None:
    run_history(tmp_path, seed, steps=80)


@pytest.mark.parametrize(
    "stride",
    [pytest.param(5, marks=pytest.mark.slow), pytest.param(1, marks=pytest.mark.torture)],
    ids=["some calls", "every call"],
)
@pytest.mark.timeout(1_800)
def test_an_exchange_that_is_killed_before_or_after_a_call_of_git_is_completed_by_the_next(
    tmp_path: Path, stride: int
) -> None:
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
    for number in range(0, calls, stride):
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


def test_the_first_entry_that_is_ever_forgotten_does_not_come_back_with_an_edit_of_another_machine(
    tmp_path: Path,
) -> None:
    with clones(tmp_path, 2, fast=True) as (one, two):
        one.add(entry("alpha"))
        settle([one, two])
        two.edit(random.Random(1), partial(_append, "- Edited elsewhere."))
        two.sync()
        assert one.remove(random.Random(1), Rule.FORGOTTEN) == "alpha"
        settle([one, two])
        assert one.document.blocks == two.document.blocks == ()
        assert "- Edited elsewhere." in _lines(collect(one.project))


def test_an_entry_that_healing_brought_back_goes_once_the_others_forgot_it(tmp_path: Path) -> None:
    with clones(tmp_path, 2, fast=True) as (one, two):
        one.add(entry("alpha"))
        settle([one, two])
        memory = (two.project / ECHO).read_text()
        two.edit(random.Random(1), lambda _: "")
        two.sync()
        assert one.remove(random.Random(1), Rule.FORGOTTEN) == "alpha"
        one.sync()
        (two.project / ECHO).write_text(memory)  # as the healing of young entries does
        settle([two, one])
        assert one.document.blocks == two.document.blocks == ()


def test_a_forgotten_entry_does_not_come_back_with_a_deleted_file(tmp_path: Path) -> None:
    with clones(tmp_path, 2, fast=True) as (one, two):
        one.add(entry("alpha"))
        one.add(entry("beta", day=2))
        settle([one, two])
        assert one.remove(random.Random(1), Rule.FORGOTTEN) == "alpha"
        (one.project / ECHO).unlink()
        settle([one, two])
        assert [block.entry.title for block in one.document.blocks if block.entry] == ["beta"]
        assert collect(one.project) == collect(two.project)


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("step", list(CommitStep))
def test_a_pull_that_is_killed_at_any_step_of_its_commit_is_completed_by_the_next(
    tmp_path: Path, step: CommitStep, count: int
) -> None:
    with clones(tmp_path, 2, fast=True) as (one, two):
        one.add(entry("alpha"))
        one.add(entry("beta", day=2))
        settle([one, two])
        one.edit(random.Random(1), lambda text: text.replace("Always", "Never"))
        assert one.remove(random.Random(1), Rule.FORGOTTEN) is not None
        one.add(entry("gamma", day=3))
        two.add(entry("delta", day=4))
        one.checked_sync("one")
        before = _lines(collect(two.project))
        seen = 0

        def kill(passed: CommitStep) -> None:
            nonlocal seen
            seen += passed is step
            if seen == count and passed is step:
                os._exit(137)

        def pull() -> None:
            engine = Engine(two.paths.journal, limits=EngineLimits(), clock=lambda: NOW, trace=kill)
            with Database.open(tmp_path / "entries.db") as database:
                resources = JobResources(9, engine, EntryStore(database), DEFAULT_POLICY, no_gate, lambda: NOW)
                run_exchange(two.project, two.repository, resources)

        run_in_child(pull)
        settle([two, one])
        assert before <= _lines(collect(two.project))
        assert collect(one.project) == collect(two.project)
        titles = sorted(block.entry.title for block in two.document.blocks if block.entry)
        assert len(titles) == 3
        assert {"delta", "gamma"} < set(titles)


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
