"""What an agent's hook calls. Standard library only, and little of it: a hook never fails and returns at once.

The daemon may be dead, the settings wrong, the disk full: the agent must not notice. What a hook was told lies in
the spool until a job takes it from there.
"""
