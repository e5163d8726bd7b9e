"""The shapes of everything that `--json` prints: the contract for scripts (docs/json.md).

Values only: named tuples, and dataclasses where a default may change or a field is named like a method. They are not
pydantic models, since commands must answer in less time than loading pydantic takes. `codec` converts all to JSON and
back, `status` has the values of `echod status`, `sessions` has those of the commands of that name, `entries` has those
about entries (search, explain, picture, sync, solutions), and `commands` has all others. Nothing is exported
here, so that `echod status` loads only its own.

`schema` grows when a field changes its meaning or is removed. New fields may be added at any time.
"""
