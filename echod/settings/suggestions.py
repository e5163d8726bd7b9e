"""Suggest the setting or variable that a misspelt or misplaced name was probably meant to be.

A module of its own because it needs difflib, which takes milliseconds to load and is wanted only after a mistake.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Final

from echod.settings import schema
from echod.settings.schema import ENV_PREFIX, PATH_VARIABLES

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
