"""Declare every setting once, with type, default, range and description, and return the settings in force.

A declaration is a field whose type is `Annotated`: the type, perhaps what limits it (`Range`, `Each`), and the
description that `config.example.toml` repeats. Annotations are text until `declarations` evaluates them, so
the values cost nothing where they are only used. The numbers of `policy` are declared in `echod.memory.policy_model`.

Loads neither pydantic nor a TOML parser: this is all that a process needs whose settings were checked before.

`effective_settings` returns those in force, from a cache if nothing has changed since they were checked. Checking takes
some 170 ms, most of it to load pydantic, so its last results are kept in the runtime directory. A result is used only
for the same echod, settings file (path and version) and variables, and only from a private file of this user. Errors
and warnings are never kept, so that they are reported each time.

`loader`, which checks, is not imported before something has to be checked.
"""

from __future__ import annotations

import functools
import json
import math
import os
import stat
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NamedTuple, TypeAlias, get_args, get_origin, get_type_hints

from echod import __version__
from echod.errors import GARBLED_ERRORS, ConfigurationError
from echod.files import file_version, insecure_file_warnings, open_regular, write_private
from echod.lazy import lazy_imports
from echod.memory.policy_model import DEFAULT_POLICY, Days, PolicySettings, Range
from echod.paths import ENV_PREFIX, PATH_VARIABLES, all_defaults, not_absolute_reason

with lazy_imports(__name__):
    import subprocess

    from echod.settings import loader  # pydantic takes 170 ms to load


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
        return self.policy._replace(memory_line_limit=memory_line_limit, knowledge_line_limit=self.knowledge_line_limit)


class Declaration(NamedTuple):
    """One setting as it is declared. `keys` is its name, after the name of its table if it is in one.

    `type` is its type without the limits, which are `Range` and `Each` values.
    """

    keys: tuple[str, ...]
    type: Any
    default: Any
    limits: tuple[Any, ...]
    description: str

    @property
    def dotted(self) -> str:
        """The name as in messages: `gate.sessions`."""
        return ".".join(self.keys)

    @property
    def variable(self) -> str:
        """The environment variable that sets it."""
        return ENV_PREFIX + "__".join(self.keys).upper()


@functools.cache
def declarations() -> tuple[Declaration, ...]:
    """Return every setting in the order of the declarations: those of no table first, then table by table."""
    found: list[Declaration] = []
    hints = get_type_hints(Settings, include_extras=True)
    shared = {name for name, hint in hints.items() if not is_table(hint)}
    for name, hint in hints.items():
        default = Settings._field_defaults[name]
        if not is_table(hint):
            found.append(_declaration((name,), hint, default))
            continue
        for inner, inner_hint in get_type_hints(hint, include_extras=True).items():
            # A line limit is a number of the policies too, and declared as a setting beside them.
            if inner not in shared:
                found.append(_declaration((name, inner), inner_hint, getattr(default, inner)))
    return tuple(found)


def is_table(hint: Any) -> bool:
    """Return whether a field of `Settings` has this type because it is a table of settings."""
    return isinstance(hint, type) and hasattr(hint, "_fields")


def _declaration(keys: tuple[str, ...], hint: Any, default: Any) -> Declaration:
    assert get_origin(hint) is Annotated, f"{keys} has no description"  # noqa: S101  a mistake in `values`
    plain_type, *limits, description = get_args(hint)
    return Declaration(keys, plain_type, default, tuple(limits), description)


def tables() -> tuple[str, ...]:
    """Return the names of the tables."""
    return tuple(dict.fromkeys(declared.keys[0] for declared in declarations() if len(declared.keys) > 1))


@functools.cache
def known_variables() -> frozenset[str]:
    """Return the variables that set something: one for each setting, and one for each table as JSON."""
    of_tables = {ENV_PREFIX + table.upper() for table in tables()}
    return frozenset({declared.variable for declared in declarations()} | of_tables)


def set_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of the environment that set something."""
    names = {name for name in environ if name.startswith(ENV_PREFIX)} - PATH_VARIABLES
    return {name: environ[name] for name in sorted(names & known_variables())} if names else {}


def to_plain(settings: Settings) -> dict[str, Any]:
    """Return the settings as JSON has them, with the keys and tables of the settings file."""
    plain: dict[str, Any] = {}
    for declared in declarations():
        *table, name = declared.keys
        target = plain.setdefault(table[0], {}) if table else plain
        target[name] = plain_value(settings, declared)
    return plain


def plain_value(settings: Settings, declared: Declaration) -> Any:
    """Return the value of one setting as JSON has it."""
    value = functools.reduce(getattr, declared.keys, settings)
    return list(value) if isinstance(value, tuple) else value


def from_plain(plain: Mapping[str, Any]) -> Settings:
    """Return the settings that `to_plain` made this of.

    Raises:
        ValueError: a value is missing, has another type, or is outside of its range.
    """
    values: dict[str, Any] = {}
    table_values: dict[str, dict[str, Any]] = {}
    for declared in declarations():
        try:
            value = functools.reduce(lambda mapping, key: mapping[key], declared.keys, plain)
        except (KeyError, TypeError) as error:
            raise ValueError(f"{declared.dotted} is missing") from error
        *table, name = declared.keys
        target = table_values.setdefault(table[0], {}) if table else values
        target[name] = _checked(declared, value)
    return build_settings(values, table_values)


def build_settings(values: Mapping[str, Any], table_values: Mapping[str, Mapping[str, Any]]) -> Settings:
    """Build the settings from the values of no table and those of each table."""
    built = {}
    for name, inner in table_values.items():
        kind = type(Settings._field_defaults[name])
        shared = {key: values[key] for key in kind.__match_args__ if key in values}
        built[name] = kind(**shared, **inner)
    return Settings(**values, **built)


def _checked(declared: Declaration, value: Any) -> Any:
    if not _has_type(declared.type, value):
        raise ValueError(f"{declared.dotted} has another type")
    for limit in declared.limits:
        if isinstance(limit, Range) and not limit.contains(value):
            raise ValueError(f"{declared.dotted} is out of range")
        if isinstance(limit, Each) and any(limit.error(item) for item in value):
            raise ValueError(f"{declared.dotted} has an unusable item")
    return tuple(value) if isinstance(value, list) else value


def _has_type(kind: Any, value: Any) -> bool:
    if get_origin(kind) is Literal:
        return value in get_args(kind)
    if get_origin(kind) is tuple:
        return isinstance(value, list) and all(isinstance(item, str) for item in value)
    if kind is float:
        return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return type(value) is kind


Check: TypeAlias = Callable[[Path, Mapping[str, str]], Settings]
_Key: TypeAlias = list[Any]
_Variant: TypeAlias = tuple[_Key, Any]

_MAX_CACHE_BYTES: Final = 256 * 1024
_MAX_VARIANTS: Final = 8
_OTHERS_MASK: Final = 0o077
_TICK_NS: Final = 100_000_000
"""A change within one tick of a file system's clock (10 ms at most on Linux) leaves the times as they are."""

_CHECK_SECONDS: Final = 30.0


def check_in_process(file: Path, environ: Mapping[str, str]) -> Settings:
    """Check the settings in this process, which loads pydantic; see `load_settings`."""
    return loader.load_settings(file, environ)


def check_in_child(file: Path, environ: Mapping[str, str]) -> Settings:
    """Check the settings in a child process, for a daemon that would keep pydantic's 20 MB for its whole life."""
    # -P: what is in the working directory is not imported.
    command = [sys.executable, "-P", "-m", "echod.settings.loader", str(file)]
    try:
        done = subprocess.run(command, env=environ, capture_output=True, timeout=_CHECK_SECONDS, check=True)
        answer = json.loads(done.stdout)
        if "error" not in answer:
            return from_plain(answer["settings"])
    except (OSError, subprocess.SubprocessError, ValueError, KeyError, TypeError):
        return check_in_process(file, environ)  # an installation that -P does not find
    raise ConfigurationError(answer["error"])


def effective_settings(
    file: Path, environ: Mapping[str, str], cache: Path, *, check: Check = check_in_process
) -> Settings:
    """Return the settings in force. `file` need not exist. `check` is called if `cache` does not have them.

    Raises:
        ConfigurationError: they cannot be used; the message names every wrong key, with file and line.
    """
    if all_defaults(file, environ):
        return Settings()
    # The version is taken before the file is read, so that a change in between is noticed the next time.
    key = _cache_key(file, environ)
    variants = _read_variants(cache)
    for known_key, plain in variants:
        if known_key == key:
            try:
                return from_plain(plain)
            except GARBLED_ERRORS:
                break
    settings = check(file, environ)
    if not _may_change_unnoticed(key):
        _write_variants(cache, [(key, to_plain(settings)), *(entry for entry in variants if entry[0] != key)])
    return settings


def _cache_key(file: Path, environ: Mapping[str, str]) -> _Key:
    """Return everything that the result of a check depends on, as JSON has it."""
    try:
        version = list(file_version(file.stat()))
    except OSError:
        version = None
    # A file that ECHOD_CONFIG names must exist; a default one need not.
    return [str(file), version, bool(environ.get("ECHOD_CONFIG")), set_variables(environ)]


def _may_change_unnoticed(key: _Key) -> bool:
    """Return whether the file was written so recently that the next write could have the same version."""
    version = key[1]
    return version is not None and time.time_ns() - max(version[2:]) < _TICK_NS


def _read_variants(cache: Path) -> list[_Variant]:
    """Return the results that the cache has; none if it cannot be read, is damaged, or others could have written it."""
    try:
        with open_regular(cache, follow_symlinks=False) as file:
            status = os.fstat(file.fileno())
            if status.st_uid != os.getuid() or stat.S_IMODE(status.st_mode) & _OTHERS_MASK:
                return []
            data = file.read(_MAX_CACHE_BYTES + 1)
        content = json.loads(data)
        if len(data) > _MAX_CACHE_BYTES or content["echod"] != __version__:
            return []
        return [(key, plain) for key, plain in content["variants"]]
    except (OSError, *GARBLED_ERRORS):
        return []


def _write_variants(cache: Path, variants: list[_Variant]) -> None:
    content = {"echod": __version__, "variants": variants[:_MAX_VARIANTS]}
    try:
        write_private(cache, json.dumps(content, separators=(",", ":")).encode())
    except OSError:
        return  # the next process checks again


def settings_warnings(file: Path, environ: Mapping[str, str], uid: int) -> tuple[str, ...]:
    """Return a sentence for each variable that sets nothing, and for each way in which others can change the file."""
    return (*unknown_variable_warnings(environ), *insecure_file_warnings(file, uid))


def unknown_variable_warnings(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return a warning for each `ECHOD_*` variable that sets nothing."""
    names = {name for name in environ if name.startswith(ENV_PREFIX)} - PATH_VARIABLES
    unknown = sorted(names - known_variables()) if names else []
    if not unknown:
        return ()

    return tuple(f"{name} is not a setting of echod{loader.variable_suggestion(name) or '.'}" for name in unknown)
