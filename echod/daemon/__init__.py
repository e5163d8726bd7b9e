"""The long-running service: watch -> queue -> worker; schedule; heartbeat; notify. Knows no job's inside."""
