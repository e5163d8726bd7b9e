"""Handing the daemon to the platform's supervisor: systemd user units and launchd agents. Knows no command line."""
