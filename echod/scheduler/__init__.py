"""Decides which jobs a store needs, when they may run, and runs them one at a time."""
