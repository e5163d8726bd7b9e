"""The status report: `collect` composes it, `warnings` and `packs` contribute to it.

The names are imported by their modules' paths: `echod gate` needs only a few of them.
"""
