"""Find the work that stores need, queue it, and run the jobs while the gate is open.

- `needs`: the work that findings and observations call for, and the decision whether it may run now (the gate).
- `reconcile`: find maintenance, and bring the queue in line with all needs.
- `worker`: run the jobs, one at a time.

Other packages import the modules by path: the gate and the needs are used by commands that must not load the jobs.
"""
