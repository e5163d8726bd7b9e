"""The user's settings: declared once, read from a file and the environment, checked, and cached.

Other packages import `echod.settings.schema` (the settings as values, those in force, and warnings) and, to check for
real or to list the source of each value, `loader`, which loads pydantic. Nothing is exported here, so that a process
that only needs the values loads nothing else.

Modules for other packages: `schema`.
"""
