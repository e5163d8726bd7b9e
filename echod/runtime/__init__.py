"""The running service as other processes see it: its locks, heartbeat, wake file and free disk space.

Shared by the daemon, the commands and the status report, none of which these modules import.
"""
