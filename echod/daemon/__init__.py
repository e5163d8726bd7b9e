"""The long-running process: watcher, queue, worker thread, timers, heartbeat. Contains no job code.

`main` builds everything; `loop` owns the state; `watcher`, `events` and `event_health` deliver changed paths;
`worker_thread` runs the jobs. Only `run` is for other packages. It loads watchdog and APScheduler.
"""

from echod.daemon.main import run

__all__ = ["run"]
