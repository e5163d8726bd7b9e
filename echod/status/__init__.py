"""Collects the status report that `echod status` prints."""
