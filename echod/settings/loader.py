"""Check the settings: a TOML file, then `ECHOD_*` variables, which win.

The pydantic model is derived from the declarations in `echod.settings.schema`. Unknown keys are errors with file, line
and the setting that was probably meant; unknown variables are warnings (`schema`). Run as a program, the module
checks for another process. Loading it takes some 170 ms, so it is imported only where something has to be checked.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import sys
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, create_model, model_validator
from pydantic_settings import BaseSettings, EnvSettingsSource, PydanticBaseSettingsSource, SettingsConfigDict
from pydantic_settings.exceptions import SettingsError

from echod.errors import ConfigurationError, os_reason
from echod.files import read_regular
from echod.lazy import lazy_pattern
from echod.memory.policy_model import PolicySettings, Range
from echod.paths import ENV_PREFIX, PATH_VARIABLES
from echod.settings import schema
from echod.settings.schema import Declaration, Each, Settings

_SIMILARITY_CUTOFF: Final = 0.8
"""How similar two names must be: a letter or two of a usual name may differ."""


def key_suggestion(keys: tuple[str, ...]) -> str:
    """Return the end of a sentence about a key of the settings file that does not exist; "" if no name is similar."""
    setting = _nearest_setting(keys)
    if setting is not None:
        # A key below a [table] belongs to that table, so a key of no table has to be above all of them.
        position = ", above the first [table]" if len(setting) == 1 and len(keys) > 1 else ""
        return f"; did you mean {'.'.join(setting)}{position}?"
    table = _nearest_name(keys[0], set(schema.tables()) - {keys[0]}) if len(keys) == 1 else None
    return f"; did you mean [{table}]?" if table else ""


def variable_suggestion(name: str) -> str:
    """Return the end of a sentence about a variable that sets nothing; "" if no name is similar."""
    keys = tuple(name.removeprefix(ENV_PREFIX).lower().split("__"))
    setting = _nearest_setting(keys)
    if setting is not None:
        return f"; did you mean {ENV_PREFIX}{'__'.join(setting).upper()}?"
    if len(keys) > 1:
        return ""
    known = {other.removeprefix(ENV_PREFIX).lower(): other for other in schema.known_variables() | PATH_VARIABLES}
    near = _nearest_name(keys[0], known)
    return f"; did you mean {known[near]}?" if near else ""


def _nearest_setting(keys: tuple[str, ...]) -> tuple[str, ...] | None:
    """Return the setting with the same name in another table, else one with a similar name, the same table first.

    The names of tables are not compared: two settings in one table are not more similar for that.
    """
    candidates = [declared.keys for declared in schema.declarations() if declared.keys != keys]
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


_MAX_FILE_BYTES: Final = 1024 * 1024

_TOML_POSITION: Final = lazy_pattern(r" \(at (?:line (\d+), column \d+|end of document)\)$")


class SettingsFile(NamedTuple):
    """A settings file that was read. One that does not exist is empty."""

    path: Path
    text: str
    values: Mapping[str, Any]

    def location_of(self, keys: Sequence[str]) -> str:
        """Return `file:line` of the line that sets `keys`."""
        return f"{self.path}:{line_of(keys, self.text)}"


class SettingSourceKind(StrEnum):
    """Where the value of a setting comes from."""

    DEFAULT = "default"
    FILE = "file"
    VARIABLE = "variable"


class SettingSource(NamedTuple):
    """A setting in force and the source of its value. Value and default are as JSON has them.

    `key` is its name, with its table: `gate.sessions`. `location` is `file:line`, or the variable's name; None for a
    default.
    """

    key: str
    value: Any
    default: Any
    kind: SettingSourceKind
    location: str | None


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Root(BaseSettings):
    model_config = SettingsConfigDict(
        env_prefix=ENV_PREFIX,
        env_nested_delimiter="__",
        extra="forbid",
        frozen=True,
        nested_model_default_partial_update=True,
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
        """Return only the values passed in, which `_validate` has read from file and variables."""
        del settings_cls, env_settings, dotenv_settings, file_secret_settings
        return (init_settings,)


def _derive_model() -> type[_Root]:
    """Derive the model that checks from the declarations."""
    declared = schema.declarations()
    fields: dict[str, Any] = {one.keys[0]: _field(one) for one in declared if len(one.keys) == 1}
    for table in schema.tables():
        inner: dict[str, Any] = {one.keys[1]: _field(one) for one in declared if one.keys[0] == table}
        validators: dict[str, Any] = {"consistent": model_validator(mode="after")(_check_policy)}
        model = create_model(
            f"{table.title()}Table", __base__=_Table, __validators__=validators if table == "policy" else None, **inner
        )
        fields[table] = (model, Field(default_factory=model))
    return create_model("SettingsModel", __base__=_Root, **fields)


def _field(declared: Declaration) -> tuple[Any, Any]:
    limits: dict[str, Any] = {"allow_inf_nan": False} if declared.type is float else {}
    hint = declared.type
    for limit in declared.limits:
        if isinstance(limit, Range):
            limits |= {"gt" if limit.above else "ge": limit.minimum, "le": limit.maximum}
        elif isinstance(limit, Each):
            hint = Annotated[hint, AfterValidator(partial(_check_items, limit.error))]
    return hint, Field(default=declared.default, description=declared.description, **limits)


def _check_items(error: Callable[[str], str | None], items: tuple[str, ...]) -> tuple[str, ...]:
    errors = [reason for item in items if (reason := error(item)) is not None]
    if errors:
        raise ValueError("; ".join(errors))
    return items


def _check_policy(model: BaseModel) -> BaseModel:
    reason = PolicySettings(**dict(model)).inconsistency()
    if reason is not None:
        raise ValueError(reason)
    return model


_SettingsModel: Final = _derive_model()


class _EnvironmentSource(EnvSettingsSource):
    """pydantic's reading of variables, from a mapping. Variables that name no setting set nothing."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        super().__init__(_SettingsModel)

    def _load_env_vars(self) -> Mapping[str, str | None]:
        return {name.lower(): value for name, value in schema.set_variables(self._environ).items()}


def load_settings(file: Path, environ: Mapping[str, str]) -> Settings:
    """Read and check the settings from `file` (defaults where it does not exist) and the process environment.

    A file that `ECHOD_CONFIG` names must exist.

    Raises:
        ConfigurationError: they cannot be used; the message names every wrong key, with file and line.
    """
    return _validate(_read_file(file, environ), _read_variables(environ), environ)


def setting_sources(file: Path, environ: Mapping[str, str]) -> tuple[SettingSource, ...]:
    """Return every setting with its value and its source, in the order of `config.example.toml`."""
    settings_file, variables = _read_file(file, environ), _read_variables(environ)
    settings = _validate(settings_file, variables, environ)
    sources = []
    for declared in schema.declarations():
        keys = declared.keys
        kind, location = SettingSourceKind.DEFAULT, None
        if _contains(variables, keys):
            kind, location = SettingSourceKind.VARIABLE, _variable_for(keys, environ)
        elif _contains(settings_file.values, keys):
            kind, location = SettingSourceKind.FILE, settings_file.location_of(keys)
        value, default = schema.plain_value(settings, declared), schema.plain_value(Settings(), declared)
        sources.append(SettingSource(declared.dotted, value, default, kind, location))
    return tuple(sources)


def _contains(values: Any, keys: tuple[str, ...]) -> bool:
    for key in keys:
        if not isinstance(values, Mapping) or key not in values:
            return False
        values = values[key]
    return True


def _read_file(file: Path, environ: Mapping[str, str]) -> SettingsFile:
    return read_settings_file(file, must_exist=bool(environ.get("ECHOD_CONFIG")))


def read_settings_file(path: Path, *, must_exist: bool) -> SettingsFile:
    """Read the settings file at `path`. With `must_exist`, its absence is a mistake, because the user named it.

    Raises:
        ConfigurationError: it cannot be read, or is not TOML; with the line where that is known.
    """
    text = _read_text(path, must_exist=must_exist)
    try:
        return SettingsFile(path, text, tomllib.loads(text))
    except (RecursionError, MemoryError) as error:
        raise ConfigurationError(f"{path} is nested too deeply; simplify it.") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(_toml_error(path, text, str(error))) from error


def _read_text(path: Path, *, must_exist: bool) -> str:
    try:
        return read_regular(path, _MAX_FILE_BYTES).decode()
    except FileNotFoundError as error:
        if must_exist:
            raise ConfigurationError(f"{path} does not exist; ECHOD_CONFIG or --config names it.") from error
        return ""
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{path} cannot be read: it is not UTF-8. Save it as UTF-8.") from error
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be read: {os_reason(error)}; check its permissions.") from error


def _toml_error(path: Path, text: str, parser_message: str) -> str:
    position = _TOML_POSITION.search(parser_message)
    line = int(position[1]) if position and position[1] else len(text.rstrip().splitlines())
    message = _TOML_POSITION.sub("", parser_message)
    hint = ' Words are quoted, like mode = "report".' if message == "Invalid value" else ""
    return f"{path}:{line}: this is not TOML: {message[:1].lower()}{message[1:]}.{hint}"


def line_of(keys: Sequence[str], text: str) -> int:
    """Return the 1-based line that sets `keys`, which TOML parsers do not report."""
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


def _read_variables(environ: Mapping[str, str]) -> Mapping[str, Any]:
    """Return the values of the variables, nested as the settings are."""
    try:
        return _EnvironmentSource(environ)()
    except SettingsError as error:
        match = re.search(r'field "(\w+)"', str(error))
        name = ENV_PREFIX + match[1].upper() if match else f"One of the {ENV_PREFIX}* variables"
        raise ConfigurationError(f"{name} is not JSON; a list is written like '[\"~/src/*\"]'.") from error


def _validate(file: SettingsFile, variables: Mapping[str, Any], environ: Mapping[str, str]) -> Settings:
    """Return the values that were checked as the plain values that the packages use."""
    try:
        values = dict(_SettingsModel(**_merge(file.values, variables)))
    except ValidationError as error:
        raise ConfigurationError("\n".join(_error_message(dict(e), file, environ) for e in error.errors())) from error
    table_values = {table: dict(values.pop(table)) for table in schema.tables()}
    return schema.build_settings(values, table_values)


def _merge(file: Mapping[str, Any], variables: Mapping[str, Any]) -> dict[str, Any]:
    """Put variables over the file. A nested variable changes only its own key."""
    merged = dict(file)
    for name, value in variables.items():
        table = merged.get(name)
        merged[name] = {**table, **value} if isinstance(table, dict) and isinstance(value, dict) else value
    return merged


def _error_message(error: Mapping[str, Any], file: SettingsFile, environ: Mapping[str, str]) -> str:
    keys = tuple(str(part) for part in error["loc"])
    dotted = ".".join(keys)
    location = _variable_for(keys, environ) or file.location_of(keys)
    if error["type"] == "extra_forbidden":
        return f"{location}: there is no setting {dotted}{key_suggestion(keys) or '.'}"
    if (required := _required_text(error)) is not None:
        return f"{location}: {dotted} must be {required}, not {_value_text(error.get('input'))}."
    message = str(error["msg"]).removeprefix("Value error, ")
    return f"{location}: {dotted}: {message[:1].lower()}{message[1:]}."


_TYPE_TEXTS: Final = {
    "int": "a whole number",
    "float": "a number",
    "finite": "a number",
    "bool": "true or false",
    "string": "a text in quotes",
    "tuple": "a list",
}
_BOUND_TEXTS: Final = {"ge": "at least", "gt": "more than", "le": "at most", "lt": "less than"}
_MAX_VALUE_CHARACTERS: Final = 60


def _required_text(error: Mapping[str, Any]) -> str | None:
    """Return the values that a setting may have, as words after "must be"; None if only the library knows."""
    kind, context = str(error["type"]), error.get("ctx") or {}
    if kind == "literal_error":
        return str(context.get("expected"))
    bounds = [f"{text} {context[name]:g}" for name, text in _BOUND_TEXTS.items() if name in context]
    if bounds:
        return " and ".join(bounds)
    return _TYPE_TEXTS.get(kind.partition("_")[0])


def _value_text(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _MAX_VALUE_CHARACTERS else f"{text[:_MAX_VALUE_CHARACTERS]}..."


def _variable_for(keys: tuple[str, ...], environ: Mapping[str, str]) -> str | None:
    """Return the variable that sets `keys`: its own, or that of its whole table; None if neither is set."""
    names = (ENV_PREFIX + "__".join(keys[:2]).upper(), ENV_PREFIX + keys[0].upper())
    return next((name for name in names if name in environ), None)


def main() -> None:
    """Check the settings file that the first argument names, for `schema.check_in_child`; the result is JSON."""
    try:
        answer: dict[str, Any] = {"settings": schema.to_plain(load_settings(Path(sys.argv[1]), os.environ))}
    except ConfigurationError as error:
        answer = {"error": str(error)}
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    main()
