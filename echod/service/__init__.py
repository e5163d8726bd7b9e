"""Install and control the daemon as a systemd user unit or a launchd agent. Independent of the command line.

`base` defines a service and what its implementations share, `systemd` and `launchd` implement it, `factory` chooses
one, and `paths` contains file locations and hints for a daemon that does not run. This `__init__` exports nothing:
every command may need `paths`, and must not load the implementations for it. Import the modules.
"""
