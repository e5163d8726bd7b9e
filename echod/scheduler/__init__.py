"""Find the work that stores need, queue it, and run the jobs while the gate is open.

- `needs`: the work that findings and observations call for.
- `reconcile`: find maintenance, and bring the queue in line with all needs.
- `gate`: the decision whether a project's memory may be written now.
- `worker`: run the next job.

Other packages import the modules by path: the gate and the needs are used by commands that must not load the jobs.
"""
