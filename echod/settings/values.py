"""Declare every setting once: its name, type, default, range and description.

A declaration is a field whose type is `Annotated`: the type, perhaps what limits it (`Range`, `Each`), and the
description that `config.example.toml` repeats. Annotations are text until `echod.settings.schema` evaluates them, so
the values cost nothing where they are only used. The numbers of `policy` are declared in `echod.memory.policy_model`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Literal, NamedTuple

from echod.memory.policy_model import DEFAULT_POLICY, Days, PolicySettings, Range
from echod.paths import not_absolute_reason

DEFAULT_TEAMS = ("rune-*", "arc-*", "session-*")
"""Teams of the workflow plugins, and those that Claude Code names after their session."""


class Each(NamedTuple):
    """A limit for every item of a list: a function that returns what is wrong with an item, or None."""

    error: Callable[[str], str | None]


Mode = Literal["maintain", "report"]
Recall = Literal["off", "failure", "edit", "all"]
LogLevel = Literal["debug", "info", "warning", "error"]
Seconds = Annotated[float, Range(0, 86_400)]
Minutes = Annotated[float, Range(0, 1_440, above=True)]
LineLimit = Annotated[int, Range(100, 100_000)]
AbsolutePaths = Annotated[tuple[str, ...], Each(not_absolute_reason)]


class GateSettings(NamedTuple):
    """Signs of activity in a project besides the markers of the workflow plugins."""

    sessions: Annotated[bool, "Whether a live Claude Code session that is busy in a project makes it active."] = True


class ObserveSettings(NamedTuple):
    """Which completed tasks become observations."""

    teams: Annotated[
        tuple[str, ...],
        'Patterns of the teams whose completed tasks become observations. "" matches sessions without a team.',
    ] = DEFAULT_TEAMS


class HookSettings(NamedTuple):
    """Actions of the agents' hooks besides reporting events."""

    register_projects: Annotated[
        bool, "Whether a session that starts in a project with a memory registers the project, as `echod add` does."
    ] = False
    recall: Annotated[
        Recall,
        'When a hook shows entries to an agent: "failure" after a call that failed, "edit" also before an edit, '
        '"all" also before a command, "off" never.',
    ] = "failure"
    session_summary: Annotated[
        bool,
        "Whether a session that starts receives the project's ten most valuable entries, at most 1,200 characters.",
    ] = False


class PackSettings(NamedTuple):
    """Where doc packs come from besides the shipped ones, and when they are stale."""

    registries: Annotated[
        AbsolutePaths, "Directories with a registry.json and your own doc packs. Later ones override earlier ones."
    ] = ()
    staleness_days: Annotated[
        Days, "Days after which an installed doc pack is stale, unless a project sets its own number."
    ] = 90


class SessionSettings(NamedTuple):
    """Whether and where the conversations of agents are archived."""

    enabled: Annotated[
        bool, "Whether the conversations of all registered projects are archived. `echod init --sessions` does for one."
    ] = False
    root: Annotated[
        str, "Directory with an archive for each project, absolute or from ~ on. Empty: echod's own data directory."
    ] = ""
    idle_minutes: Annotated[
        Minutes, "Minutes without a change after which a session is archived, if no hook reported its end."
    ] = 30
    codex: Annotated[bool, "Whether sessions of Codex are archived too."] = False
    summary_command: Annotated[
        tuple[str, ...],
        "A command that summarises: a prompt on its input, one JSON object back. Empty: sentences are extracted.",
    ] = ()
    summary_seconds: Annotated[Seconds, "Seconds that the command may take."] = 60


class SyncSettings(NamedTuple):
    """The exchange of memories with their remotes (`echod sync setup --remote`)."""

    minutes: Annotated[
        float, Range(0, 10_080), "Minutes between two exchanges of a memory with its remote. 0: only on request."
    ] = 0


class IngestSettings(NamedTuple):
    """Whether the reports of workflows become memory."""

    workflows: Annotated[
        bool, "Whether the reports of reviews, audits and work become memory when their workflow ends."
    ] = True


class ValidationSettings(NamedTuple):
    """The command that judges learnings from reports before they are stored."""

    command: Annotated[
        tuple[str, ...],
        "A command that judges a learning: a prompt on its input, one JSON object with a verdict back. Empty: none.",
    ] = ()
    seconds: Annotated[Seconds, "Seconds that the command may take."] = 60


class AutoMemorySettings(NamedTuple):
    """Copies of the memory that Claude Code keeps itself."""

    copies: Annotated[
        bool, "Whether copies of auto memory are kept in the state directory, for `echod restore --auto-memory`."
    ] = False


class Settings(NamedTuple):
    """Every setting. `policy` repeats the line limits beside it; `policy_settings` replaces them for a project."""

    projects: Annotated[
        AbsolutePaths, "Globs of project directories to maintain, besides the projects added with `echod add`."
    ] = ()
    mode: Annotated[Mode, '"report" plans and shows every change and writes nothing to a store.'] = "maintain"
    quiet_seconds: Annotated[
        Seconds, "Seconds for which files must be unchanged, and workflows over, before echod writes."
    ] = 30
    debounce_seconds: Annotated[Seconds, "Seconds without an event after which a store is inspected."] = 2
    debounce_max_seconds: Annotated[
        Seconds,
        "Seconds after which a store with constant events is inspected anyway. "
        "A store that takes long to inspect gets a pause.",
    ] = 20
    reconcile_minutes: Annotated[
        Minutes, "Minutes between two comparisons of every store with the disk, which need no event."
    ] = 10
    memory_line_limit: Annotated[
        LineLimit,
        "Lines of a MEMORY.md above which entries are archived. A project may raise this limit, never lower it.",
    ] = DEFAULT_POLICY.memory_line_limit
    knowledge_line_limit: Annotated[LineLimit, "Lines of a knowledge.md above which it is compressed."] = (
        DEFAULT_POLICY.knowledge_line_limit
    )
    max_attempts: Annotated[
        int, Range(1, 100), "Failed attempts after which a job is dead until its input changes."
    ] = 5
    log_level: Annotated[LogLevel, "The lowest level of the log lines that are written."] = "info"
    gate: GateSettings = GateSettings()
    observe: ObserveSettings = ObserveSettings()
    hooks: HookSettings = HookSettings()
    packs: PackSettings = PackSettings()
    sessions: SessionSettings = SessionSettings()
    sync: SyncSettings = SyncSettings()
    ingest: IngestSettings = IngestSettings()
    validation: ValidationSettings = ValidationSettings()
    auto_memory: AutoMemorySettings = AutoMemorySettings()
    policy: PolicySettings = DEFAULT_POLICY

    def policy_settings(self, memory_line_limit: int) -> PolicySettings:
        """Return every number of the policies, for a project whose memory files have this line limit."""
        return replace(self.policy, memory_line_limit=memory_line_limit, knowledge_line_limit=self.knowledge_line_limit)
