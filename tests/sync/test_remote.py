"""A memory that the project's git ignores, on several machines with one remote."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from echod.memory.archive import read_archive
from echod.sync.repository import GitResult
from tests.support import until
from tests.sync.conftest import ECHO, Machine, entry, file_of

A, B, C, D = entry("alpha"), entry("beta", day=2), entry("gamma", day=3), entry("delta", day=4)
ARCHIVE = ".rune/echoes/reviewer/archive/removed-2026.md"
SECRET = "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"


class Site:
    """One machine with a clone of the project."""

    def __init__(self, machine: Machine, project: Path) -> None:
        self.machine, self.project = machine, project

    def write(self, *entries: str, path: str = ECHO) -> None:
        (self.project / path).parent.mkdir(parents=True, exist_ok=True)
        (self.project / path).write_text(file_of(*entries))

    def read(self, path: str = ECHO) -> str:
        return (self.project / path).read_text()

    def sync(self) -> str:
        return self.machine.run("sync", self.project)

    def fail(self) -> str:
        done = self.machine.echod("sync", self.project)
        assert done.returncode == 1, done.stdout
        assert done.stderr.count("\n") == 1, done.stderr
        return done.stderr

    @property
    def repository(self) -> Path:
        """The repository of the exchange, of a machine with one project."""
        (found,) = (path for path in (self.machine.home.state / "sync").iterdir() if path.suffix != ".damaged")
        return found

    def files(self) -> dict[str, bytes]:
        root = self.project / ".rune/echoes"
        found = (path for path in root.rglob("*") if path.is_file() and "/." not in str(path.relative_to(root.parent)))
        return {str(path.relative_to(root)): path.read_bytes() for path in found}


class World:
    """Machines, the project's own remote, and the remote of its memory."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.first = Machine(root / "first")
        self.remote = root / "memories.git"
        self.first.git("init", "-q", "--bare", self.remote, cwd=root)
        origin = root / "origin"
        self.first.git("init", "-q", origin, cwd=root)
        (origin / ".gitignore").write_text(".rune/\n")
        self.first.git("add", "-A", cwd=origin)
        self.first.git("commit", "-qm", "start", cwd=origin)
        self.origin = origin

    def site(self, name: str, *entries: str) -> Site:
        machine = self.first if name == "first" else Machine(self.root / name)
        project = machine.home.root / f"work-of-{name}"
        machine.git("clone", "-q", self.origin, project, cwd=self.root)
        site = Site(machine, project)
        if entries:
            site.write(*entries)
        machine.run("sync", "setup", "--remote", self.remote, project)
        return site


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_two_machines_that_both_have_a_memory_get_the_same(world: World) -> None:
    one, two = world.site("first", A, B), world.site("second", B, C)
    assert "pushed" in one.sync()
    assert "1 role merged, pushed" in two.sync()
    assert "1 role merged" in one.sync()
    assert "up to date" in one.sync()
    assert one.files() == two.files()
    assert one.read() == file_of(A, B, C)
    assert two.machine.run("log", two.project).count("sync") >= 1


@pytest.mark.slow
def test_a_machine_without_a_memory_gets_it_with_knowledge_and_archive_but_no_findings(world: World) -> None:
    one = world.site("first", A)
    one.write(B, path=".rune/echoes/reviewer/knowledge.md")
    for name in ("ward-findings.md", "quarantine/REASONS.md", "archive/findings/x-findings.md"):
        one.write(C, path=f".rune/echoes/reviewer/{name}")
    one.sync()
    two = world.site("second")
    two.sync()
    assert set(two.files()) == {"reviewer/MEMORY.md", "reviewer/knowledge.md"}
    assert two.read() == file_of(A)


def forget(site: Site, title: str) -> None:
    document = site.read()
    assert title in document
    listing = site.machine.run("show", "reviewer", site.project)
    line = next(line for line in listing.splitlines() if title in line)
    identifier = next(word for word in line.split() if len(word) >= 6 and set(word) <= set("0123456789abcdef"))
    site.machine.run("forget", identifier, site.project, "--yes")


@pytest.mark.slow
def test_a_forgotten_entry_stays_forgotten_even_if_the_other_machine_edited_or_never_synced_it(world: World) -> None:
    one, two = world.site("first", A, B, C), world.site("second", A, B, C)
    one.sync()
    two.sync()
    forget(one, "beta")
    two.write(A, entry("beta", "Edited elsewhere.", day=2), C)
    one.sync()
    two.sync()
    one.sync()
    assert one.files() == two.files()
    assert one.read() == file_of(A, C)
    archive = read_archive(one.files()["reviewer/archive/removed-2026.md"])
    assert "beta" in "".join(item.text for item in archive.entries)
    three = world.site("third", A, B)
    three.sync()
    assert three.read() == file_of(A, C)


@pytest.mark.slow
def test_an_entry_rewritten_on_both_machines_keeps_one_text_and_archives_the_other(world: World) -> None:
    one, two = world.site("first", A, B), world.site("second")
    one.sync()
    two.sync()
    one.write(A, entry("beta", "Do it now.", day=2))
    two.write(A, entry("beta", "Do it much later.", day=2))
    one.sync()
    two.sync()
    one.sync()
    assert one.files() == two.files()
    assert "Do it much later." in one.read()
    assert "Do it now." in one.read(ARCHIVE)
    assert "<<<<" not in one.read()


@pytest.mark.slow
def test_a_secret_holds_the_push_and_names_the_place(world: World) -> None:
    one, two = world.site("first", A), world.site("second", C)
    two.sync()
    one.write(A, entry("beta", f"Use token {SECRET} there.", day=2))
    message = one.fail()
    assert "line 12" in message
    assert "MEMORY.md" in message
    assert SECRET not in message
    assert "gamma" in one.read()
    packed = b"".join(path.read_bytes() for path in world.remote.rglob("*") if path.is_file())
    assert SECRET.encode() not in packed
    assert SECRET not in world.first.git("log", "--all", "-p", cwd=world.remote)


def test_a_pull_is_undone_as_one_job(world: World) -> None:
    one, two = world.site("first", A), world.site("second", C)
    two.sync()
    output = one.sync()
    job = output.rpartition("echod undo ")[2].split()[0]
    assert one.read() == file_of(A, C)
    one.machine.run("undo", job, "--yes")
    assert one.read() == file_of(A)


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("offline", "no git repository"),
        ("unreachable", "cannot be reached"),
        ("credentials", "credentials"),
        ("wrong", "does not have this project's memory"),
        ("rejected", "rejected the push"),
    ],
)
@pytest.mark.slow
def test_a_remote_that_cannot_be_used_costs_one_sentence(fault: str, words: str, world: World) -> None:
    one = world.site("first", A)
    match fault:
        case "offline":
            shutil.move(world.remote, world.root / "away")
        case "unreachable":
            one.machine.run("sync", "setup", "--remote", "http://127.0.0.1:9/x.git", one.project)
        case "credentials":
            ssh = one.machine.bin / "ssh"
            ssh.write_text("#!/bin/sh\necho 'git@host: Permission denied (publickey).' >&2\nexit 255\n")
            ssh.chmod(0o755)
            one.machine.run("sync", "setup", "--remote", "ssh://git@host/x.git", one.project)
        case "rejected":
            hook = world.remote / "hooks/pre-receive"
            hook.write_text("#!/bin/sh\necho 'Only on weekdays.' >&2\nexit 1\n")
            hook.chmod(0o755)
        case _:
            one.sync()
            branch = world.first.git("for-each-ref", "--format=%(refname)", cwd=world.remote).strip()
            tree = world.first.git("hash-object", "-t", "tree", "-w", "/dev/null", cwd=world.remote).strip()
            other = world.first.git("commit-tree", "-m", "x", tree, cwd=world.remote).strip()
            world.first.git("update-ref", branch, other, cwd=world.remote)
    assert words in one.fail()
    assert one.read() == file_of(A)
    if fault == "offline":
        shutil.move(world.root / "away", world.remote)
        assert "pushed" in one.sync()


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ("fatal: could not read Username for 'https://host': terminal prompts disabled", "refuses the credentials"),
        ("fatal: unable to access 'https://host/': The requested URL returned error: 403", "refuses the credentials"),
        ("git@host: Permission denied (publickey).\nfatal: Could not read from", "refuses the credentials"),
        ("fatal: unable to access 'https://host/': The requested URL returned error: 503", "problem of its own"),
        ("fatal: unable to access 'https://host/': Could not resolve host: host", "cannot be reached"),
        ("ssh: connect to host host port 22: Connection timed out", "cannot be reached"),
        ("fatal: repository 'https://host/x.git/' not found", "no git repository"),
        ("remote: Permission to me/x.git denied.\n ! [remote rejected] a -> b (denied)", "rejected the push"),
        ("fatal: write error: No space left on device", "the disk is full"),
        ("error: https://me:token@host/x says no", "https://host/x says no"),
    ],
)
def test_what_git_says_becomes_one_phrase_without_credentials(message: str, reason: str) -> None:
    found = GitResult(128, b"", message).reason
    assert reason in found
    assert "token" not in found


@pytest.mark.slow
def test_a_rewritten_or_deleted_remote_loses_nothing(world: World) -> None:
    one, two = world.site("first", A, B), world.site("second")
    one.sync()
    two.sync()
    branch = world.first.git("for-each-ref", "--format=%(refname)", cwd=world.remote).strip()
    old = world.first.git("rev-parse", branch, cwd=world.remote).strip()
    two.write(A, B, C)
    two.sync()
    one.sync()
    world.first.git("update-ref", branch, old, cwd=world.remote)
    one.write(A, B, C, D)
    assert "rewritten" in one.sync()
    two.sync()
    assert one.read() == two.read() == file_of(A, B, C, D)
    world.first.git("update-ref", "-d", branch, cwd=world.remote)
    two.sync()
    one.sync()
    assert one.read() == two.read() == file_of(A, B, C, D)


def test_neither_hooks_nor_filters_of_the_repository_run(world: World) -> None:
    one = world.site("first", A)
    trace = world.root / "trace"
    script = f"#!/bin/sh\necho ran >> {trace}\nexit 0\n"
    for directory in (one.repository / "hooks", one.project / ".git/hooks"):
        for name in ("pre-push", "post-commit", "reference-transaction", "post-merge"):
            directory.mkdir(exist_ok=True)
            (directory / name).write_text(script)
            (directory / name).chmod(0o755)
    one.machine.git("config", "filter.x.clean", str(directory / "pre-push"), cwd=one.project)
    (one.project / ".gitattributes").write_text("* filter=x\n")
    one.sync()
    assert not trace.exists()


@pytest.mark.slow
def test_a_file_deleted_here_comes_back_and_one_in_conflict_is_not_pushed(world: World) -> None:
    one, two = world.site("first", A), world.site("second")
    one.sync()
    two.sync()
    (two.project / ECHO).unlink()
    # A file that is gone for a moment may be one that another program is about to write.
    until(lambda: two.machine.echod("sync", two.project).returncode == 0, "the file to count as deleted")
    assert two.read() == file_of(A)
    (one.project / ECHO).write_text(file_of(A) + "<<<<<<< ours\nx\n=======\ny\n>>>>>>> theirs\n")
    assert "conflict markers" in one.fail()
    two.sync()
    assert two.read() == file_of(A)


@pytest.mark.slow
def test_projects_in_one_repository_are_not_mixed(world: World) -> None:
    one = world.site("first")
    sites = [Site(one.machine, one.project / name) for name in ("api", "web")]
    for site, text in zip(sites, (A, B), strict=True):
        site.write(text)
        site.machine.run("sync", "setup", "--remote", world.remote, site.project)
        assert "pushed" in site.sync()
    assert [site.read() for site in sites] == [file_of(A), file_of(B)]
    assert all("up to date" in site.sync() for site in sites)


def test_the_path_of_a_remote_means_the_same_from_every_directory(world: World) -> None:
    one = world.site("first", A)
    one.machine.run("sync", "setup", "--remote", "../../memories.git", cwd=one.project)
    assert "pushed" in one.machine.run("sync", one.project, cwd="/")


@pytest.mark.slow
def test_only_an_exchange_that_changed_files_can_be_undone(world: World) -> None:
    one, two = world.site("first", A), world.site("second", B)
    assert "undo" not in one.sync()
    assert "echod undo" in two.sync()
    assert "undo" not in two.sync()


@pytest.mark.slow
@pytest.mark.parametrize("lock", ["refs/echod/base.lock", "refs/echod/next.lock", "packed-refs.lock", "config.lock"])
def test_a_lock_that_a_killed_git_left_stops_nothing(lock: str, world: World) -> None:
    one = world.site("first", A)
    one.sync()
    one.write(A, B)
    (one.repository / lock).touch()
    assert "pushed" in one.sync()


@pytest.mark.slow
@pytest.mark.parametrize(
    "fault", ["empty objects", "missing objects", "a missing file of the last exchange", "a bad reference"]
)
def test_a_repository_that_a_crash_damaged_is_replaced_and_loses_nothing(fault: str, world: World) -> None:
    one, two = world.site("first", A, B), world.site("second")
    one.sync()
    two.sync()
    forget(one, "beta")
    one.sync()
    two.write(A, B, C)
    match fault:
        case "a missing file of the last exchange":
            tree = ["ls-tree", "-r", "refs/echod/base", ECHO]
            blob = one.machine.git(*tree, cwd=one.repository).split()[2]
            damaged = [one.repository / "objects" / blob[:2] / blob[2:]]
        case "a bad reference":
            damaged = [two.repository / "refs/echod/base"]
        case _:
            damaged = [path for path in (two.repository / "objects").rglob("*") if path.is_file()]
    for path in damaged:
        path.unlink()
        if fault in ("empty objects", "a bad reference"):
            path.write_bytes(b"" if fault == "empty objects" else b"\0" * 41)
    two.sync()
    one.sync()
    assert one.files() == two.files()
    assert one.read().rstrip() == file_of(A, C).rstrip()
    assert "up to date" in two.sync()


@pytest.mark.slow
@pytest.mark.parametrize("option", ["core.sshCommand", "GIT_SSH_COMMAND", None])
def test_the_transport_is_the_users_own(option: str | None, world: World) -> None:
    one = world.site("first", A)
    trace = world.root / "trace"
    program = one.machine.bin / ("ssh" if option is None else "my-ssh")
    program.write_text(f'#!/bin/sh\necho "$@" > {trace}\nexit 255\n')
    program.chmod(0o755)
    if option == "core.sshCommand":
        one.machine.git("config", "--global", option, f"{program} -i key", cwd=one.project)
    elif option is not None:
        one.machine.variables[option] = f"{program} -i key"
    one.machine.run("sync", "setup", "--remote", "ssh://git@host/x.git", one.project)
    one.fail()
    assert ("BatchMode=yes" in trace.read_text()) is (option is None)
    assert ("-i key" in trace.read_text()) is (option is not None)


def test_the_projects_own_remote_and_a_tracked_memory_are_refused(world: World) -> None:
    one = world.site("first", A)
    done = one.machine.echod("sync", "setup", "--remote", f"{world.origin}/", one.project)
    assert "own remote" in done.stderr
    one.machine.git("add", "-f", ECHO, cwd=one.project)
    done = one.machine.echod("sync", "setup", "--remote", world.remote, one.project)
    assert "Git tracks this memory" in done.stderr


@pytest.mark.slow
def test_the_four_commands_of_the_documentation_set_up_two_machines(world: World) -> None:
    page = (Path(__file__).parents[2] / "docs/sync.md").read_text()
    block = page.partition("two machines in four commands")[2].partition("```sh\n")[2].partition("```")[0]
    commands = [line.split() for line in block.splitlines() if line.startswith("echod ")]
    assert len(commands) == 4
    machines = [world.first, Machine(world.root / "second")]
    projects = [machine.home.root / "clone" for machine in machines]
    for machine, project in zip(machines, projects, strict=True):
        machine.git("clone", "-q", world.origin, project, cwd=world.root)
    sites = [Site(machine, project) for machine, project in zip(machines, projects, strict=True)]
    sites[0].write(A, B)
    for site, command in zip([sites[0], sites[0], sites[1], sites[1]], commands, strict=True):
        words = [str(world.remote) if ":" in word else word for word in command[1:]]
        site.machine.run(*words, cwd=site.project)
    assert sites[1].read() == sites[0].read() == file_of(A, B)
