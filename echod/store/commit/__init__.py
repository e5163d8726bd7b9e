"""Applies a change set: stage, record the intent, exchange, archive, consume."""
