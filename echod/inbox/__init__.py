"""Take the events that hooks reported from the spool to the observe job.

`spool` reads the directory in which hooks leave events, and which entries they showed; `inbox` assigns the events to
stores and roles. Other packages import them by path, since commands that only count events need no inbox.
"""
