"""Find the work that stores need, queue it, and run the jobs while the gate is open.

- `needs`, `maintenance`: the work that the files of a store call for.
- `reconcile`: bring the queue in line with these needs.
- `gate`: the decision whether a project's memory may be written now.
- `worker`: run the next job.

Other packages import the modules by path: the gate and the needs are used by commands that must not load the jobs.
"""
