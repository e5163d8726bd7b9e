"""The SQLite database of the service: the job queue, recorded workflows and hook events, and data about entries.

Other packages import the modules by path, since read-only commands need only some of them:

- `database`, `schema`, `repair`: the file, its transactions, its tables, and its rebuild after damage.
- `jobs`, `queue`: jobs and what is read of them, and the queue.
- `entries`, `entry_ids`: data about entries and groups of them; `fingerprints`: the lines that they cite.
- `decisions`: answers to review items, and what survives a lost database.
- `workflow_log`: workflows that were seen or declared.
- `session_log`: how far the transcripts of sessions were read, and what hooks reported.
"""
