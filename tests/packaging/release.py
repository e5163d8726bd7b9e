"""Walk through the checklist of a release. Everything is only checked until `--publish` creates and pushes the tag.

Usage: python -m tests.packaging.release [--publish]

The tag starts the workflow `release.yml`, which builds the distributions again and publishes them with attestations.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import echod
from tests.packaging.wheel import ROOT, PackagingError, build, check_wheel, find_pythons
from tests.packaging.wheel import main as check_wheels

TAG = f"v{echod.__version__}"
_RELEASED = re.compile(r"## (\d+\.\d+\.\d+) \(\d{4}-\d{2}-\d{2}\)")
_VERSION = re.compile(r"## (\d+\.\d+\.\d+) \((?:\d{4}-\d{2}-\d{2}|unreleased)\)")


class Step(NamedTuple):
    """One line of the checklist. `check` returns what is wrong, or ""."""

    name: str
    check: Callable[[], str]


def check_tree() -> str:
    """Return what differs from a clean checkout of `main`."""
    if changed := _git("status", "--porcelain"):
        return f"These files are not committed:\n{changed}"
    branch = _git("rev-parse", "--abbrev-ref", "HEAD")
    return "" if branch == "main" else f"The branch is {branch}, not main."


def check_tag() -> str:
    """Return whether the version has been released before."""
    return f"The tag {TAG} exists. Raise the version in echod/__init__.py." if TAG in _git("tag").split() else ""


def check_changelog(text: str, version: str) -> str:
    """Return what is wrong with the first heading of the changelog, which names the version."""
    heading = _first_heading(text)
    found = _VERSION.fullmatch(heading)
    return "" if found and found[1] == version else f"CHANGELOG.md begins with {heading!r}, not with {version}."


def check_day(text: str, version: str) -> str:
    """Return what is wrong with the day in the first heading of the changelog, which a published version has."""
    heading = _first_heading(text)
    if (found := _RELEASED.fullmatch(heading)) and found[1] == version:
        return ""
    return f"CHANGELOG.md begins with {heading!r}. Replace it with: ## {version} (YYYY-MM-DD)"


def check_distributions() -> str:
    """Build both distributions, and a wheel from the source distribution, and compare the wheels."""
    with tempfile.TemporaryDirectory(prefix="echod-release-") as name:
        directory = Path(name)
        distributions = build(directory / "dist")
        check_wheel(distributions.wheel)
        command = [sys.executable, "-m", "build", "--wheel", "--outdir", str(directory / "again")]
        subprocess.run(["tar", "-xf", str(distributions.source), "-C", name], check=True)
        (unpacked,) = directory.glob("echod_memory-*")
        if differences := _list_files(unpacked) ^ {*_git("ls-files").splitlines(), "PKG-INFO"}:
            return f"The source distribution differs from the repository in: {', '.join(sorted(differences))}"
        subprocess.run([*command, str(unpacked)], check=True, capture_output=True)
        (again,) = (directory / "again").glob("*.whl")
        same = again.read_bytes() == distributions.wheel.read_bytes()
    return "" if same else "The source distribution builds a different wheel than the checkout."


def check_make(target: str) -> Callable[[], str]:
    """Return a check that runs a target of the Makefile."""

    def check() -> str:
        done = subprocess.run(["make", target], cwd=ROOT, capture_output=True, text=True, check=False)
        return "" if done.returncode == 0 else f"make {target} failed:\n{(done.stdout + done.stderr)[-2000:]}"

    return check


def check_installation() -> str:
    """Install the distributions with every interpreter here."""
    check_wheels(find_pythons())
    return ""


STEPS = (
    Step("the checkout is a clean main", check_tree),
    Step(f"the tag {TAG} is new", check_tag),
    Step("the changelog has the version", lambda: check_changelog(_read("CHANGELOG.md"), echod.__version__)),
    Step("style, types and imports", check_make("lint")),
    Step("the documentation builds", check_make("docs")),
    Step("both distributions are complete and equal", check_distributions),
    Step("the distributions install and work", check_installation),
    Step("the tests pass", check_make("test-all")),
)
"""All that can be true before the day of the release."""

PUBLISHED = (Step("the changelog has the day", lambda: check_day(_read("CHANGELOG.md"), echod.__version__)),)
"""What only a release needs. These are quick, so they come first."""


def main(*, publish: bool) -> int:
    """Walk through the checklist to its end. Return 1 if a step is not done."""
    open_steps = 0
    steps = (*PUBLISHED, *STEPS) if publish else STEPS
    for step in steps:
        print(f"{step.name} ... ", end="", flush=True)
        try:
            problem = step.check()
        except (PackagingError, subprocess.SubprocessError) as error:
            problem = str(error)
        print(problem or "ok")
        open_steps += bool(problem)
    if open_steps:
        print(f"\n{open_steps} of {len(steps)} steps are open. Nothing was tagged.")
        return 1
    commands = [
        ["git", "tag", "--sign", TAG, "--message", f"echod {echod.__version__}"],
        ["git", "push", "origin", TAG],
    ]
    for command in commands:
        if publish:
            subprocess.run(command, cwd=ROOT, check=True)
        else:
            print(f"would run: {' '.join(command)}")
    if not publish and (missing := check_day(_read("CHANGELOG.md"), echod.__version__)):
        print(f"Before that: {missing}")
    return 0


def _first_heading(text: str) -> str:
    return next((line for line in text.splitlines() if line.startswith("## ")), "")


def _list_files(directory: Path) -> set[str]:
    return {str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file()}


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def _read(name: str) -> str:
    return (ROOT / name).read_text()


if __name__ == "__main__":
    sys.exit(main(publish=sys.argv[1:] == ["--publish"]))
