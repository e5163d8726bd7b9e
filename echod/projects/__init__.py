"""The projects that echod maintains: their list and pauses, their own settings, and the discovery of their stores.

`registry` and `settings` are imported by commands that must answer at once, so nothing is exported here.

Modules for other packages: `discovery` (also the one rule for the project of a path).
"""
