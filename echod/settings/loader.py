"""Settings: a TOML file, then `ECHOD_*` variables, variables winning. Read once, checked, and passed on as a value.

The values with their defaults are in `echod.settings.values`; here is what each means and what it may be.
Unknown keys are errors that name file and line; unknown variables are warnings. `ECHOD_STATE_DIR`,
`ECHOD_RUNTIME_DIR` and `ECHOD_CONFIG` belong to `echod.paths`, since they decide where this file is.

The settings file as text: what it holds, and on which line a key stands. Knows no setting.
"""

from __future__ import annotations

import difflib
import re
import stat
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, NamedTuple, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, EnvSettingsSource, PydanticBaseSettingsSource, SettingsConfigDict
from pydantic_settings.exceptions import SettingsError

from echod.errors import ConfigurationError, os_reason
from echod.memory.policy_model import PolicySettings
from echod.projects.registry import glob_error
from echod.settings.values import (
    ENV_PREFIX,
    PATH_VARIABLES,
    GateSettings,
    HookSettings,
    LogLevel,
    Mode,
    ObserveSettings,
    PackSettings,
    Settings,
)

_POSITION = re.compile(r" \(at (?:line (\d+), column \d+|end of document)\)$")


class SettingsFile(NamedTuple):
    """A settings file that was read; one that does not exist holds nothing."""

    path: Path
    text: str
    values: Mapping[str, Any]

    def location_of(self, keys: Sequence[str]) -> str:
        """`file:line` of what sets `keys`."""
        return f"{self.path}:{line_of(keys, self.text)}"


def read_settings_file(path: Path, *, must_exist: bool) -> SettingsFile:
    """The file at `path`.

    Args:
        path: the file.
        must_exist: somebody named it, so its absence is a mistake.

    Raises:
        ConfigurationError: it cannot be read, or is not TOML; with the line where that is known.
    """
    text = _read_text(path, must_exist=must_exist)
    try:
        return SettingsFile(path, text, tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(_toml_error(path, text, str(error))) from error


def line_of(keys: Sequence[str], text: str) -> int:
    """The 1-based line that sets `keys`; TOML parsers do not tell."""
    key_path = tuple(keys)
    table: tuple[str, ...] = ()
    for number, line in enumerate(text.splitlines(), start=1):
        if header := re.match(r"\s*\[([^\[\]]+)\]", line):
            table = tuple(part.strip().strip("\"'") for part in header[1].split("."))
            if table == key_path[: len(table)] and len(table) >= len(key_path):
                return number
        elif (assignment := re.match(r"\s*([\w.\"'-]+)\s*=", line)) is not None:
            path = table + tuple(part.strip("\"'") for part in assignment[1].split("."))
            if path == key_path[: len(path)]:
                return number
    return 1


def _read_text(path: Path, *, must_exist: bool) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        if must_exist:
            raise ConfigurationError(f"{path} does not exist; ECHOD_CONFIG or --config names it.") from error
        return ""
    except (OSError, UnicodeDecodeError) as error:
        if isinstance(error, UnicodeDecodeError):
            raise ConfigurationError(f"{path} cannot be read: it is not UTF-8; save it as that.") from error
        raise ConfigurationError(f"{path} cannot be read: {os_reason(error)}; check its permissions.") from error


def _toml_error(path: Path, text: str, parser_message: str) -> str:
    position = _POSITION.search(parser_message)
    line = int(position[1]) if position and position[1] else len(text.rstrip().splitlines())
    message = _POSITION.sub("", parser_message)
    hint = ' Words stand in quotes, like mode = "report".' if message == "Invalid value" else ""
    return f"{path}:{line}: this is not TOML: {message[:1].lower()}{message[1:]}.{hint}"


_DEFAULTS = Settings()
_TABLES = frozenset({"gate", "observe", "hooks", "packs", "policy"})
_SUM_TOLERANCE = 1e-9
_SIMILARITY_CUTOFF = 0.8
"""How alike names must be to take one for the other misspelt: a letter or two of a usual name."""

Seconds = Annotated[float, Field(ge=0, le=86_400, allow_inf_nan=False)]
Minutes = Annotated[float, Field(gt=0, le=1_440, allow_inf_nan=False)]


class GateModel(BaseModel):
    """What the gate looks at beyond the workflow plugins' own markers."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    sessions: bool = Field(
        default=_DEFAULTS.gate.sessions,
        description="A live Claude Code session that says it is busy in a project holds its gate.",
    )


class ObserveModel(BaseModel):
    """Which completed tasks become observations."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    teams: tuple[str, ...] = Field(
        default=_DEFAULTS.observe.teams,
        description='Patterns of the teams whose completed tasks are remembered; "" for sessions without a team.',
    )


class HookModel(BaseModel):
    """What the hooks of agents may do beyond reporting."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    register_projects: bool = Field(
        default=_DEFAULTS.hooks.register_projects,
        description="A session that starts in a project with a memory registers the project, as `echod add` does.",
    )
    session_summary: bool = Field(
        default=_DEFAULTS.hooks.session_summary,
        description="A session that starts is told the project's ten most valuable entries, 1,200 characters at most.",
    )


Fraction = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Days = Annotated[int, Field(ge=1, le=3_650)]


class PolicyModel(BaseModel):
    """The numbers by which entries are kept, condensed, promoted and archived; docs/lifecycle.md tells how."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    importance_weight: Fraction = Field(
        default=_DEFAULTS.policy.importance_weight,
        description="Weight of the layer in an entry's score; this and the next two add up to 1.",
    )
    relevance_weight: Fraction = Field(
        default=_DEFAULTS.policy.relevance_weight,
        description="Weight of the share of recent workflows that referenced the entry.",
    )
    recency_weight: Fraction = Field(
        default=_DEFAULTS.policy.recency_weight, description="Weight of how lately the entry was verified."
    )
    importance_etched: Fraction = Field(
        default=_DEFAULTS.policy.importance_etched, description="How much an etched entry counts, 0 to 1."
    )
    importance_notes: Fraction = Field(default=_DEFAULTS.policy.importance_notes, description="How much a note counts.")
    importance_inscribed: Fraction = Field(
        default=_DEFAULTS.policy.importance_inscribed, description="How much an inscribed entry counts."
    )
    importance_observations: Fraction = Field(
        default=_DEFAULTS.policy.importance_observations, description="How much an observation counts."
    )
    importance_traced: Fraction = Field(
        default=_DEFAULTS.policy.importance_traced, description="How much a traced entry counts."
    )
    relevance_days: Days = Field(
        default=_DEFAULTS.policy.relevance_days, description="Days for which workflows and their references count."
    )
    inscribed_days: Days = Field(
        default=_DEFAULTS.policy.inscribed_days,
        description="Days without a reference after which an inscribed entry is old.",
    )
    observations_days: Days = Field(
        default=_DEFAULTS.policy.observations_days,
        description="Days without a reference after which an observation is archived.",
    )
    traced_days: Days = Field(
        default=_DEFAULTS.policy.traced_days, description="Days without a reference after which a traced entry is old."
    )
    inscribed_score: Fraction = Field(
        default=_DEFAULTS.policy.inscribed_score,
        description="An old inscribed entry expires with a score below this, if its file is too long.",
    )
    traced_score: Fraction = Field(
        default=_DEFAULTS.policy.traced_score, description="The same for an old traced entry."
    )
    noise_share: Fraction = Field(
        default=_DEFAULTS.policy.noise_share,
        description="Share of the line limit that observations and traced entries may take together.",
    )
    traced_keep_share: Fraction = Field(
        default=_DEFAULTS.policy.traced_keep_share,
        description="Of the traced entries in a file that is too long, the best share stays.",
    )
    traced_compress_share: Fraction = Field(
        default=_DEFAULTS.policy.traced_compress_share,
        description="The next share goes into knowledge.md; the rest is archived.",
    )
    condense_over_lines: int = Field(
        default=_DEFAULTS.policy.condense_over_lines,
        ge=5,
        le=1_000,
        description="Inscribed entries with more lines may be condensed.",
    )
    daily_inscribed_share: Fraction = Field(
        default=_DEFAULTS.policy.daily_inscribed_share,
        description="Share of a file's inscribed entries that may be archived for room in one day.",
    )
    promote_references: int = Field(
        default=_DEFAULTS.policy.promote_references,
        ge=2,
        le=1_000,
        description="An observation with so many references becomes inscribed.",
    )
    pin_days: Days = Field(
        default=_DEFAULTS.policy.pin_days, description="How long an entry that a person brought back is left alone."
    )

    @model_validator(mode="after")
    def _check_sums(self) -> Self:
        if abs(self.importance_weight + self.relevance_weight + self.recency_weight - 1) > _SUM_TOLERANCE:
            raise ValueError("importance_weight, relevance_weight and recency_weight must add up to 1")
        if self.traced_keep_share + self.traced_compress_share > 1 + _SUM_TOLERANCE:
            raise ValueError("traced_keep_share and traced_compress_share must not be more than 1 together")
        return self


class PackModel(BaseModel):
    """Where doc packs come from besides those that ship, and when they are old; docs/packs.md tells more."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    registries: tuple[str, ...] = Field(
        default=_DEFAULTS.packs.registries,
        description="Directories with a registry.json and doc packs of your own; later ones override earlier ones.",
    )
    staleness_days: Days = Field(
        default=_DEFAULTS.packs.staleness_days,
        description="Days after which an installed doc pack is stale, unless a project says otherwise.",
    )

    @field_validator("registries")
    @classmethod
    def _check_registries(cls, paths: tuple[str, ...]) -> tuple[str, ...]:
        errors = [fault for place in paths if (fault := glob_error(place)) is not None]
        if errors:
            raise ValueError("; ".join(errors))
        return paths


class SettingsModel(BaseSettings):
    """Every setting with its default, meaning and bounds; `config.example.toml` shows the same."""

    model_config = SettingsConfigDict(
        env_prefix=ENV_PREFIX,
        env_nested_delimiter="__",
        extra="forbid",
        frozen=True,
        nested_model_default_partial_update=True,
    )

    projects: tuple[str, ...] = Field(
        default=_DEFAULTS.projects,
        description="Globs of project directories to maintain besides those added with `echod add`.",
    )
    mode: Mode = Field(
        default=_DEFAULTS.mode, description='"report" plans and shows everything and writes nothing to a store.'
    )
    quiet_seconds: Seconds = Field(
        default=_DEFAULTS.quiet_seconds,
        description="How long files must be still, and a workflow be over, before echod writes.",
    )
    debounce_seconds: Seconds = Field(
        default=_DEFAULTS.debounce_seconds, description="How long a store must be still before it is looked at."
    )
    debounce_max_seconds: Seconds = Field(
        default=_DEFAULTS.debounce_max_seconds,
        description="A store that is never still is looked at after this long all the same; "
        "one that takes long to look at gets a rest.",
    )
    reconcile_minutes: Minutes = Field(
        default=_DEFAULTS.reconcile_minutes,
        description="Every store is compared with the disk this often, whatever events said.",
    )
    memory_line_limit: int = Field(
        default=_DEFAULTS.memory_line_limit,
        ge=100,
        le=100_000,
        description="Lines of a MEMORY.md above which entries have to go. A project may ask for more, never for less.",
    )
    knowledge_line_limit: int = Field(
        default=_DEFAULTS.knowledge_line_limit,
        ge=100,
        le=100_000,
        description="Lines of a knowledge.md above which it is compressed.",
    )
    max_attempts: int = Field(
        default=_DEFAULTS.max_attempts,
        ge=1,
        le=100,
        description="A job that failed this often rests until its input changes.",
    )
    log_level: LogLevel = Field(
        default=_DEFAULTS.log_level, description="The least important log lines that are written."
    )
    gate: GateModel = Field(default_factory=GateModel)
    observe: ObserveModel = Field(default_factory=ObserveModel)
    hooks: HookModel = Field(default_factory=HookModel)
    packs: PackModel = Field(default_factory=PackModel)
    policy: PolicyModel = Field(default_factory=PolicyModel)

    @field_validator("projects")
    @classmethod
    def _check_projects(cls, patterns: tuple[str, ...]) -> tuple[str, ...]:
        errors = [fault for pattern in patterns if (fault := glob_error(pattern)) is not None]
        if errors:
            raise ValueError("; ".join(errors))
        return patterns

    def to_settings(self) -> Settings:
        """What was checked, as the plain values that everything works with."""
        own_values = {name: getattr(self, name) for name in type(self).model_fields.keys() - _TABLES}
        return Settings(
            gate=GateSettings(**dict(self.gate)),
            observe=ObserveSettings(**dict(self.observe)),
            hooks=HookSettings(**dict(self.hooks)),
            packs=PackSettings(**dict(self.packs)),
            policy=PolicySettings(
                memory_line_limit=self.memory_line_limit,
                knowledge_line_limit=self.knowledge_line_limit,
                **dict(self.policy),
            ),
            **own_values,
        )

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Only what `load` passes: it has read file and variables; nothing else is a source."""
        del settings_cls, env_settings, dotenv_settings, file_secret_settings
        return (init_settings,)


class _EnvironmentSource(EnvSettingsSource):
    """pydantic's reading of variables, from a mapping that was passed in; those that name no setting set nothing."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        super().__init__(SettingsModel)

    def _load_env_vars(self) -> Mapping[str, str | None]:
        known = _known_variables()
        return {name.lower(): value for name, value in self._environ.items() if name in known}


def load_settings(file: Path, environ: Mapping[str, str]) -> Settings:
    """Settings from `file` (defaults where it does not exist) and the process environment.

    A file that was named by `ECHOD_CONFIG` must exist.

    Raises:
        ConfigurationError: something is wrong; the sentence names every key, with file and line.
    """
    return _validate(_read_file(file, environ), _read_variables(environ), environ).to_settings()


def _read_file(file: Path, environ: Mapping[str, str]) -> SettingsFile:
    return read_settings_file(file, must_exist=bool(environ.get("ECHOD_CONFIG")))


def _validate(file: SettingsFile, variables: Mapping[str, Any], environ: Mapping[str, str]) -> SettingsModel:
    try:
        return SettingsModel(**_merge(file.values, variables))
    except ValidationError as error:
        raise ConfigurationError("\n".join(_error_message(dict(e), file, environ) for e in error.errors())) from error


class SettingSourceKind(StrEnum):
    """Where the value of a setting comes from."""

    DEFAULT = "default"
    FILE = "file"
    VARIABLE = "variable"


class SettingSource(NamedTuple):
    """A setting as it is in force, and why.

    Attributes:
        key: its name, with its table: `gate.sessions`.
        value: as JSON has it.
        default: what it would be if nobody said anything.
        kind: who said it.
        location: `file:line`, or the variable's name; None for a default.
    """

    key: str
    value: Any
    default: Any
    kind: SettingSourceKind
    location: str | None


def setting_sources(file: Path, environ: Mapping[str, str]) -> tuple[SettingSource, ...]:
    """Every setting with its value and where that comes from, in the order of `config.example.toml`.

    Raises:
        ConfigurationError: as `load` does.
    """
    settings_file, variables = _read_file(file, environ), _read_variables(environ)
    settings = _validate(settings_file, variables, environ).model_dump(mode="json")
    defaults = SettingsModel().model_dump(mode="json")
    sources = []
    for keys in _setting_paths():
        kind, location = SettingSourceKind.DEFAULT, None
        if _contains(variables, keys):
            kind, location = SettingSourceKind.VARIABLE, _variable_for(keys, environ)
        elif _contains(settings_file.values, keys):
            kind, location = SettingSourceKind.FILE, settings_file.location_of(keys)
        sources.append(
            SettingSource(".".join(keys), _value_at(settings, keys), _value_at(defaults, keys), kind, location)
        )
    return tuple(sources)


def _contains(values: Any, keys: tuple[str, ...]) -> bool:
    for key in keys:
        if not isinstance(values, Mapping) or key not in values:
            return False
        values = values[key]
    return True


def _value_at(values: Any, keys: tuple[str, ...]) -> Any:
    for key in keys:
        values = values[key]
    return values


def _read_variables(environ: Mapping[str, str]) -> Mapping[str, Any]:
    """What the variables set, nested as the settings are."""
    try:
        return _EnvironmentSource(environ)()
    except SettingsError as error:
        match = re.search(r'field "(\w+)"', str(error))
        name = ENV_PREFIX + match[1].upper() if match else f"One of the {ENV_PREFIX}* variables"
        raise ConfigurationError(f"{name} is not JSON; a list is written like '[\"~/src/*\"]'.") from error


def _merge(file: Mapping[str, Any], variables: Mapping[str, Any]) -> dict[str, Any]:
    """Variables over the file; a nested variable changes only its own key."""
    merged = dict(file)
    for name, value in variables.items():
        table = merged.get(name)
        merged[name] = {**table, **value} if isinstance(table, dict) and isinstance(value, dict) else value
    return merged


def unknown_variable_warnings(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Warnings, a sentence each, for `ECHOD_*` variables that set nothing."""
    known = _known_variables() | PATH_VARIABLES
    unknown = sorted(name for name in environ if name.startswith(ENV_PREFIX) and name not in known)
    return tuple(f"{name} is not a setting of echod{_variable_suggestion(name) or '.'}" for name in unknown)


def _known_variables() -> frozenset[str]:
    """One for each setting, and one for each table as JSON."""
    return frozenset(ENV_PREFIX + "__".join(keys[:depth]).upper() for keys in _setting_paths() for depth in (1, 2))


def insecure_file_warnings(file: Path, uid: int) -> tuple[str, ...]:
    """Warnings, a sentence each, for a settings file that others can change or swap: it decides what echod does.

    Args:
        file: the settings file; one that is missing or cannot be looked at is `load`'s to judge.
        uid: the user who runs echod.
    """
    try:
        status = file.stat()
        directory_status = file.parent.stat()
    except OSError:
        return ()
    messages = []
    if status.st_uid not in (uid, 0):
        messages.append(f"{file} belongs to another user, who decides with it what echod does here; chown it.")
    if status.st_mode & stat.S_IWOTH:
        messages.append(f"{file} can be changed by everybody on this machine; say: chmod o-w {file}")
    if directory_status.st_uid not in (uid, 0):
        messages.append(f"{file.parent} belongs to another user, who can put another {file.name} there; chown it.")
    # In a directory like /tmp nobody but its owner can rename a file.
    if directory_status.st_mode & stat.S_IWOTH and not directory_status.st_mode & stat.S_ISVTX:
        messages.append(f"{file} can be replaced by everybody on this machine; say: chmod o-w {file.parent}")
    return tuple(messages)


def _error_message(error: Mapping[str, Any], file: SettingsFile, environ: Mapping[str, str]) -> str:
    keys = tuple(str(part) for part in error["loc"])
    dotted = ".".join(keys)
    location = _variable_for(keys, environ) or file.location_of(keys)
    if error["type"] == "extra_forbidden":
        return f"{location}: there is no setting {dotted}{_suggestion(keys) or '.'}"
    message = str(error["msg"]).replace("valid tuple", "list").removeprefix("Value error, ")
    return f"{location}: {dotted}: {message[:1].lower()}{message[1:]}."


def _variable_for(keys: tuple[str, ...], environ: Mapping[str, str]) -> str | None:
    """The variable that says something about `keys`: one of its own, or one for its whole table."""
    names = (ENV_PREFIX + "__".join(keys[:2]).upper(), ENV_PREFIX + keys[0].upper())
    return next((name for name in names if name in environ), None)


def _setting_paths() -> Iterator[tuple[str, ...]]:
    """The path of each setting, in the order in which they are declared."""
    for name, field in SettingsModel.model_fields.items():
        model = field.annotation
        if isinstance(model, type) and issubclass(model, BaseModel):
            yield from ((name, inner) for inner in model.model_fields)
        else:
            yield (name,)


def _suggestion(keys: tuple[str, ...]) -> str:
    """What a key that does not exist was probably meant to be; "" where nothing is near."""
    setting = _nearest_setting(keys)
    if setting is not None:
        # What stands below a [table] belongs to it, so a key of no table has to stand above all of them.
        position = ", above the first [table]" if len(setting) == 1 and len(keys) > 1 else ""
        return f"; did you mean {'.'.join(setting)}{position}?"
    table = _nearest_name(keys[0], _TABLES - {keys[0]}) if len(keys) == 1 else None
    return f"; did you mean [{table}]?" if table else ""


def _variable_suggestion(name: str) -> str:
    """The same for a variable."""
    keys = tuple(name.removeprefix(ENV_PREFIX).lower().split("__"))
    setting = _nearest_setting(keys)
    if setting is not None:
        return f"; did you mean {ENV_PREFIX}{'__'.join(setting).upper()}?"
    if len(keys) > 1:
        return ""
    known = {other.removeprefix(ENV_PREFIX).lower(): other for other in _known_variables() | PATH_VARIABLES}
    near = _nearest_name(keys[0], known)
    return f"; did you mean {known[near]}?" if near else ""


def _nearest_setting(keys: tuple[str, ...]) -> tuple[str, ...] | None:
    """The setting of the same name elsewhere, or of nearly the same: one of the same table before all others.

    Names alone are compared: that two stand in one table makes them no more alike.
    """
    candidates = [setting for setting in _setting_paths() if setting != keys]
    same_table = {setting[-1]: setting for setting in candidates if setting[:-1] == keys[:-1]}
    other_tables = {setting[-1]: setting for setting in candidates if setting[:-1] != keys[:-1]}
    if keys[-1] in other_tables:
        return other_tables[keys[-1]]
    for names in (same_table, other_tables):
        if (near := _nearest_name(keys[-1], names)) is not None:
            return names[near]
    return None


def _nearest_name(word: str, known: Iterable[str]) -> str | None:
    return next(iter(difflib.get_close_matches(word, sorted(known), n=1, cutoff=_SIMILARITY_CUTOFF)), None)
