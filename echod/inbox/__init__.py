"""Observations reported by an agent's hooks, from the spool to the observe job."""
