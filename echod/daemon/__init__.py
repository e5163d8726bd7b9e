"""The long-running process: watcher, queue, worker thread, timers, heartbeat. Contains no job code.

`main` builds everything; `loop` owns the state; `watcher` and `events` deliver changed paths; the thread of
`scheduler.worker` runs the jobs. Only `run` is for other packages. It loads watchdog and APScheduler.
"""

from echod.daemon.main import run

__all__ = ["run"]
