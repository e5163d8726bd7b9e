"""Composition: the read context, the services that write, and the removal of a project's data."""
