"""Made-up histories of source files with claims about their lines, and what became of each claim.

Files are lists of functions. Commits edit, move, reformat and delete functions, rename and delete files, and insert
unrelated ones. The truth is known because the generator follows every function. Only where a new function is in the
place of a deleted one the truth is *doubtful*: by what `docs/evidence.md` says it may be a removal or a replacement. A
function that was in the file before and was moved there replaces nothing.
"""

from __future__ import annotations

import os
import random
import subprocess
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple

_NOUNS = [
    "account",
    "invoice",
    "ledger",
    "session",
    "token",
    "cursor",
    "bucket",
    "widget",
    "parser",
    "router",
    "packet",
    "schema",
    "tenant",
    "voucher",
    "backlog",
    "gateway",
    "replica",
    "shard",
    "cluster",
    "mailbox",
    "coupon",
    "avatar",
    "catalog",
    "receipt",
    "planner",
    "ticket",
    "journey",
    "sensor",
    "folder",
    "banner",
    "signal",
    "header",
    "footer",
    "anchor",
    "branch",
    "commit",
    "digest",
    "vertex",
    "region",
    "carrier",
]
_VERBS = [
    "load",
    "store",
    "merge",
    "split",
    "check",
    "parse",
    "build",
    "close",
    "fetch",
    "drain",
    "retry",
    "count",
    "trim",
    "encode",
    "decode",
    "verify",
    "resolve",
    "attach",
    "detach",
    "expand",
    "rotate",
    "flush",
    "assign",
    "collect",
    "reduce",
    "publish",
    "recover",
    "inspect",
    "prepare",
    "remove",
]


DOUBTFUL = "doubtful"


@dataclass(slots=True)
class MadeFunction:
    """A function: its lines as they are now, and which of its original lines were edited."""

    lines: list[str]
    is_new: bool = False
    is_moved: bool = False
    is_deleted: bool = False
    edited: set[int] = field(default_factory=set)
    is_reformatted: bool = False


@dataclass(slots=True)
class MadeFile:
    """A file and its functions in order. Deleted ones stay in the list, to mark their place."""

    path: str
    functions: list[MadeFunction]
    is_deleted: bool = False

    def text(self) -> str:
        """Return the content."""
        return "\n\n".join(["import os", *("\n".join(f.lines) for f in self.functions if not f.is_deleted)]) + "\n"

    def first_line(self, function: MadeFunction) -> int:
        """Return the line on which a function begins."""
        line = 3
        for other in self.functions:
            if other is function:
                return line
            line += 0 if other.is_deleted else len(other.lines) + 1
        raise LookupError

    def has_new_beside(self, function: MadeFunction) -> bool:
        """Return whether a new function is between those that were, and are, around a deleted one."""
        at = self.functions.index(function)
        for side in (self.functions[at + 1 :], self.functions[:at][::-1]):
            for other in side:
                if other.is_new and not other.is_deleted:
                    return True
                if not (other.is_new or other.is_deleted or other.is_moved):
                    break
        return False


class Claim(NamedTuple):
    """A citation of lines of a function, as it was at the first commit, and the state that it must have."""

    cite: str
    expected: str
    what: str


def make_history(project: Path, seed: int, *, files: int, functions: int, commits: int = 6) -> list[Claim]:
    """Write a repository with a history, and return claims about its first commit: one for each function."""
    chance = random.Random(seed)
    git = _Git(project, datetime(2026, 10, 1, 12).astimezone())
    made = [
        MadeFile(
            f"{chance.choice(('src', 'lib', 'app/core'))}/{_name(chance)}_{n}.py",
            [_function(chance) for _ in range(functions)],
        )
        for n in range(files)
    ]
    git.commit(made, "begin")
    cited = []
    for file in made:
        for function in file.functions:
            whole = chance.random() < 0.5
            first = 0 if whole else chance.randrange(len(function.lines) - 1)
            last = len(function.lines) - 1 if whole else min(len(function.lines) - 1, first + chance.randrange(3))
            begin = file.first_line(function)
            cited.append((file, function, first, last, begin, file.path, list(function.lines)))
    for number in range(commits):
        _change(made, chance)
        git.commit(made, f"change {number}")
    return [_claim(*values) for values in cited]


def _claim(
    file: MadeFile, function: MadeFunction, first: int, last: int, begin: int, path: str, before: list[str]
) -> Claim:
    cite = f"{path}:{begin + first}-{begin + last}" if last > first else f"{path}:{begin + first}"
    if file.is_deleted:
        return Claim(cite, "gone", "file deleted")
    if function.is_deleted:
        is_doubtful = file.has_new_beside(function)
        return Claim(cite, DOUBTFUL if is_doubtful else "gone", "function deleted")
    if function.edited & set(range(first, last + 1)):
        return Claim(cite, "changed", "edited")
    what = "reformatted" if function.is_reformatted else "kept"
    if file.path != path:
        return Claim(cite, "moved", f"{what}, file renamed")
    # A reformatted function has other lines below its first ones; its own first line tells where it is.
    offset = _offset(function, before, first)
    return Claim(cite, "valid" if file.first_line(function) + offset == begin + first else "moved", what)


def _offset(function: MadeFunction, before: list[str], first: int) -> int:
    """Return in which line of the function, as it is now, an original line begins."""
    if not function.is_reformatted:
        return first
    return function.lines.index(_wrapped(before[first])[0]) if before[first] else first


def _change(made: list[MadeFile], chance: random.Random) -> None:
    for file in made:
        if file.is_deleted:
            continue
        if chance.random() < 0.01:
            file.is_deleted = True
            continue
        if chance.random() < 0.04:
            folder, _, name = file.path.rpartition("/")
            file.path = f"moved/{name}" if chance.random() < 0.5 else f"{folder}/{_name(chance)}_{name}"
        for function in list(file.functions):
            kind = chance.random()
            if function.is_deleted or function.edited or function.is_reformatted:
                continue
            if kind < 0.03:
                _edit(function, chance)
            elif kind < 0.055:
                function.is_deleted = True
            elif kind < 0.075:
                function.is_moved = True
                file.functions.remove(function)
                file.functions.insert(chance.randrange(len(file.functions) + 1), function)
            elif kind < 0.095:
                function.lines = [part for line in function.lines for part in _wrapped(line)]
                function.is_reformatted = True
        if chance.random() < 0.15:
            new = _function(chance)
            new.is_new = True
            file.functions.insert(chance.randrange(len(file.functions) + 1), new)


def _edit(function: MadeFunction, chance: random.Random) -> None:
    """Change one to three lines: another name, another number, another condition."""
    for number in chance.sample(range(len(function.lines)), chance.randint(1, min(3, len(function.lines)))):
        line = function.lines[number]
        digits = [at for at, c in enumerate(line) if c.isdigit()]
        if digits and chance.random() < 0.5:
            at = chance.choice(digits)
            function.lines[number] = f"{line[:at]}{(int(line[at]) + chance.randint(1, 8)) % 10}{line[at + 1 :]}"
        else:
            words = line.split("_")
            words[-1] = f"{_name(chance)}_{words[-1]}" if len(words) > 1 else f"{words[-1]}  # {_name(chance)}"
            function.lines[number] = "_".join(words)
        function.edited.add(number)


def _wrapped(line: str) -> list[str]:
    """Return a line as a formatter breaks it that allows few columns."""
    if not line.endswith(")") or "(" not in line or len(line) < 30:
        return [line.replace('"', "'")]
    head, _, inside = line.partition("(")
    indent = " " * (len(line) - len(line.lstrip()))
    return [f"{head}(", f"{indent}    {inside[:-1]},".replace('"', "'"), f"{indent})"]


def _name(chance: random.Random) -> str:
    return chance.choice(_NOUNS)


def _function(chance: random.Random) -> MadeFunction:
    one, two, three = chance.sample(_NOUNS, 3)
    verb = chance.choice(_VERBS)
    number = chance.randint(2, 999)
    body = [
        f'    {one}_{two} = {verb}_{three}({one}, limit={number}, mode="{two}")',
        f"    if {one}_{two} is None:",
        f'        raise LookupError("no {two} for {one} {number}")',
        f"    for {three} in {one}_{two}.{two}s:",
        f"        {three}.{verb}({one}, {number % 17})",
        f"    {two}_total = sum({three}.size for {three} in {one}_{two}.{verb}_all({number}))",
        f'    os.environ["{one.upper()}_{number}"] = str({two}_total)',
        f'    log.debug("{verb} {one}", {two}={two}_total)',
    ]
    kept = sorted(chance.sample(range(len(body)), chance.randint(3, len(body))))
    lines = [f"def {verb}_{one}_{two}({one}, {three}):", *(body[at] for at in kept), f"    return {one}_{two}"]
    return MadeFunction(lines)


class _Git:
    """Commits the files as they are, two days after the last commit."""

    def __init__(self, project: Path, at: datetime) -> None:
        self._project = project
        self._at = at
        self._known: set[str] = set()
        self._run("init", "-q")

    def commit(self, made: list[MadeFile], message: str) -> None:
        present = {file.path: file.text() for file in made if not file.is_deleted}
        for path in self._known - present.keys():
            (self._project / path).unlink()
        for path, text in present.items():
            target = self._project / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
        self._known = set(present)
        self._run("add", "-A")
        self._run("commit", "-q", "--allow-empty", "-m", message)
        self._at += timedelta(days=2)

    def _run(self, *words: str) -> None:
        stamp = self._at.isoformat()
        environ = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        environ |= {"GIT_AUTHOR_DATE": stamp, "GIT_COMMITTER_DATE": stamp, "GIT_CONFIG_GLOBAL": os.devnull}
        subprocess.run(
            ["git", "-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "gc.auto=0", *words],
            cwd=self._project, env=environ, check=True, capture_output=True,
        )  # fmt: skip
