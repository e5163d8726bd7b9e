"""A supervisor's command that records its calls and returns the results that a test prepared."""

from __future__ import annotations

from pathlib import Path

from echod.runtime.heartbeat import DaemonState, Heartbeat, Liveness
from echod.service.base import Clock, CommandRunner

HEARTBEAT = Heartbeat(
    pid=4711,
    started="boot:1",
    version="0.1.0",
    started_at=1.0,
    beat_at=2.0,
    beat_monotonic=2.0,
    worker_monotonic=2.0,
    canary_ok=True,
    job="",
    health="healthy",
    reconciled_at=None,
)

_SCRIPT = """#!/bin/sh
state={state}
echo "$*" >> "$state/calls"
for argument in "$@"; do
  case "$argument" in
    --property=*) [ -e "$state/show-${{argument#--property=}}" ] && cat "$state/show-${{argument#--property=}}" ;;
  esac
done
if [ -e "$state/codes-$1" ]; then
  code=$(head -n 1 "$state/codes-$1")
  sed -i 1d "$state/codes-$1"
  [ -s "$state/codes-$1" ] || rm "$state/codes-$1"
  [ "$code" = 0 ] || {{ echo "made to fail" >&2; exit "$code"; }}
fi
case "$1 $*" in
  start\\ *|restart\\ *|bootstrap\\ *|kickstart\\ *) touch "$state/running"; echo 4711 > "$state/show-MainPID" ;;
  stop\\ *|bootout\\ *|kill\\ *|disable\\ *--now*) rm -f "$state/running"; echo 0 > "$state/show-MainPID" ;;
esac
case "$1" in
  bootstrap) touch "$state/loaded" ;;
  bootout) rm -f "$state/loaded" ;;
  list) [ -e "$state/loaded" ] || exit 113 ;;
esac
exit 0
"""


class FakeSupervisor:
    """The command, its recorded calls, and a daemon whose state it controls."""

    def __init__(self, directory: Path) -> None:
        self.state = directory / "supervisor"
        self.state.mkdir()
        script = directory / "supervisorctl"
        script.write_text(_SCRIPT.format(state=self.state))
        script.chmod(0o755)
        self.tool = CommandRunner(str(script))
        self.version = "0.1.0"
        self.now = 0.0
        self.set_properties(LoadState="loaded", MainPID="0", ActiveState="inactive", Version="252", ExecMainStatus="0")

    def set_properties(self, **properties: str) -> None:
        for name, value in properties.items():
            (self.state / f"show-{name}").write_text(f"{value}\n")

    def fail_next(self, verb: str, *codes: int) -> None:
        """Make the next calls of `verb` exit with these codes."""
        (self.state / f"codes-{verb}").write_text("".join(f"{code}\n" for code in codes))

    def set_running(self, *, pid: int = 4711) -> None:
        (self.state / "running").touch()
        self.set_properties(MainPID=str(pid))

    def is_running(self) -> bool:
        return (self.state / "running").exists()

    def calls(self) -> list[str]:
        """Return the calls since the last time."""
        file = self.state / "calls"
        found = file.read_text().splitlines() if file.exists() else []
        file.unlink(missing_ok=True)
        return found

    def changing_calls(self) -> list[str]:
        """Return the calls since the last time, except read-only ones."""
        return [call for call in self.calls() if call.split()[0] not in {"show", "show-user", "list"}]

    def probe(self) -> Liveness:
        if not self.is_running():
            return Liveness(DaemonState.STOPPED, "The daemon is not running.", None)
        state = DaemonState.RUNNING if self.version == "0.1.0" else DaemonState.UPGRADED
        return Liveness(state, "healthy", HEARTBEAT)

    @property
    def clock(self) -> Clock:
        """Return a clock on which waiting takes no time."""

        def sleep(seconds: float) -> None:
            self.now += seconds

        return Clock(lambda: self.now, sleep)
