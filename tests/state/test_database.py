"""The database file: creation, damage, loss, other versions, locks, and reading without a trace."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path

import pytest

from echod.errors import StateError
from echod.state import database as connection
from echod.state.database import (
    Database,
    DatabaseBusyError,
    DatabaseDamagedError,
    DatabaseFullError,
    DatabaseLostError,
    DatabaseVersionError,
)
from echod.state.jobs import JobState, QueueView
from echod.state.repair import list_damaged_copies, open_checked
from echod.state.schema import SCHEMA_VERSION
from tests.state.examples import NOW, make_queue, need

A_ROW = "INSERT INTO store_turn VALUES (hex(randomblob(8)), 1)"
AS_ROOT = os.geteuid() == 0
TODAY = date(2026, 11, 28)


def fill(path: Path, jobs: int = 80) -> None:
    """A database of many pages, closed cleanly."""
    with Database.open(path) as database:
        queue = make_queue(database)
        for number in range(jobs):
            queue.put(need(role=f"role-{number}" + "x" * 200), NOW)


def file_names(path: Path) -> set[str]:
    return {file.name for file in path.parent.iterdir()}


def open_concurrently(number: int, path: Path, opening: str) -> list[str]:
    """Let `number` processes run `opening` at the same moment and write a row each, and return their output."""
    program = (
        "import sys; from pathlib import Path\n"
        "from echod.state.database import Database; from echod.state.repair import open_checked\n"
        "path = Path(sys.argv[1]); sys.stdin.readline()\n"
        f"{opening}\n"
        "with database.write_transaction() as link:\n"
        "    link.execute(sys.argv[2])"
    )
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(path), A_ROW], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(number)
    ]
    answers = [process.communicate("go\n", timeout=60)[0].strip() for process in processes]
    assert [process.returncode for process in processes] == [0] * number
    return answers


class TestOpening:
    def test_everything_is_private(self, path: Path) -> None:
        with Database.open(path) as database, database.write_transaction():
            modes = {file.name: oct(file.stat().st_mode & 0o777) for file in path.parent.iterdir()}

        assert path.parent.stat().st_mode & 0o777 == 0o700
        assert modes == dict.fromkeys(("echod.db", "echod.db-wal", "echod.db-shm"), "0o600")

    def test_a_commit_survives_a_power_cut(self, database: Database) -> None:
        with database.read_transaction() as link:
            assert link.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
            assert link.execute("PRAGMA synchronous").fetchone()[0] == 2
            assert link.execute("PRAGMA fullfsync").fetchone()[0] == 1
            assert link.execute("PRAGMA busy_timeout").fetchone()[0] == 1000 * connection.BUSY_TIMEOUT_SECONDS

    def test_what_is_found_again_in_the_files_does_not_wait_for_the_disk(self, database: Database) -> None:
        with database.derived_write_transaction() as link:
            assert link.execute("PRAGMA synchronous").fetchone()[0] == 1
        with database.write_transaction() as again:
            assert again is link
            assert again.execute("PRAGMA synchronous").fetchone()[0] == 2

    def test_a_derived_write_that_fails_leaves_nothing_and_later_ones_wait_for_the_disk(
        self, database: Database
    ) -> None:
        insert = "INSERT INTO store_turn (store, turn) VALUES ('s', 1)"

        def write_half() -> None:
            with database.derived_write_transaction() as link:
                link.execute(insert)
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            write_half()
        with database.write_transaction() as again:
            assert again.execute("PRAGMA synchronous").fetchone()[0] == 2
            assert again.execute("SELECT count(*) FROM store_turn").fetchone()[0] == 0

    def test_its_tables_are_created_once(self, path: Path) -> None:
        for _ in range(2):
            with Database.open(path) as database, database.read_transaction() as link:
                assert link.execute("PRAGMA user_version").fetchone()[0] == SCHEMA_VERSION

    def test_every_table_checks_its_types(self, database: Database) -> None:
        with database.read_transaction() as link:
            tables = link.execute("SELECT name, strict FROM pragma_table_list WHERE schema = 'main'").fetchall()

        lax = {row["name"] for row in tables if not row["strict"]}
        assert lax <= {"sqlite_schema", "sqlite_sequence"}

    def test_a_creation_that_fails_leaves_nothing(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(connection, "CREATE_STATEMENTS", ("CREATE TABLE half (a INT)", "NONSENSE"))
        with pytest.raises(StateError):
            Database.open(path)
        monkeypatch.undo()

        with Database.open(path) as database, database.read_transaction() as link:
            assert link.execute("SELECT 1 FROM sqlite_schema WHERE name = 'half'").fetchone() is None

    def test_many_processes_may_create_it_at_once(self, path: Path) -> None:
        answers = open_concurrently(6, path, "database = Database.open(path)")

        assert answers == [""] * 6
        with Database.open(path) as database, database.read_transaction() as link:
            assert link.execute("SELECT count(*) FROM store_turn").fetchone()[0] == 6

    @pytest.mark.parametrize(
        ("version", "message"),
        [
            pytest.param(SCHEMA_VERSION + 1, "newer echod.*Update echod", id="newer"),
            pytest.param(-1, "unknown schema.*move that file away", id="unknown"),
        ],
    )
    def test_a_database_of_another_schema_is_refused_and_left_alone(
        self, path: Path, version: int, message: str
    ) -> None:
        fill(path, 1)
        with Database.open(path) as database, database.write_transaction() as link:
            link.execute(f"PRAGMA user_version = {version}")
        before = path.read_bytes()

        for opening in (Database.open, Database.open_readonly, lambda path: open_checked(path, lambda: NOW)):
            with pytest.raises(DatabaseVersionError, match=message):
                opening(path)
        assert path.read_bytes() == before
        assert file_names(path) == {"echod.db"}

    def test_a_state_directory_that_cannot_be_made_is_named(self, tmp_path: Path) -> None:
        (tmp_path / "file").touch()

        with pytest.raises(StateError, match="ECHOD_STATE_DIR"):
            Database.open(tmp_path / "file" / "state" / "echod.db")

    def test_a_closed_database_is_reported(self, path: Path) -> None:
        database = Database.open(path)
        database.close()
        database.close()

        with pytest.raises(StateError, match="closed"), database.read_transaction():
            pass


class TestTransactions:
    def test_an_exception_undoes_everything(self, database: Database) -> None:
        def fails() -> None:
            with database.write_transaction() as link:
                link.execute("INSERT INTO store_turn VALUES ('/p', 1)")
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            fails()

        with database.read_transaction() as link:
            assert link.execute("SELECT count(*) FROM store_turn").fetchone()[0] == 0

    def test_a_reader_changes_nothing(self, database: Database) -> None:
        with database.read_transaction() as link:
            link.execute("INSERT INTO store_turn VALUES ('/p', 1)")

        with database.read_transaction() as link:
            assert link.execute("SELECT count(*) FROM store_turn").fetchone()[0] == 0

    def test_readers_see_one_moment_while_others_write(self, database: Database) -> None:
        with database.read_transaction() as reader:
            reader.execute("SELECT count(*) FROM store_turn").fetchone()
            with database.write_transaction() as link:
                link.execute("INSERT INTO store_turn VALUES ('/p', 1)")
            assert reader.execute("SELECT count(*) FROM store_turn").fetchone()[0] == 0

    def test_threads_take_turns(self, database: Database) -> None:
        def count() -> None:
            for _ in range(25):
                with database.write_transaction() as link:
                    turn = link.execute("SELECT coalesce(max(turn), 0) FROM store_turn").fetchone()[0]
                    link.execute("INSERT INTO store_turn VALUES (hex(randomblob(8)), ?)", (turn + 1,))

        threads = [threading.Thread(target=count) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        with database.read_transaction() as link:
            assert tuple(link.execute("SELECT max(turn), count(*) FROM store_turn").fetchone()) == (200, 200)

    def test_a_database_that_stays_locked_is_busy_not_broken(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(connection, "BUSY_TIMEOUT_SECONDS", 0.05)
        with Database.open(path) as holder, Database.open(path) as database, holder.write_transaction():
            with pytest.raises(DatabaseBusyError, match="Try again"), database.write_transaction():
                pass
            with database.read_transaction() as link:
                link.execute("SELECT count(*) FROM job").fetchone()

    def test_a_wrong_statement_is_a_state_error_with_its_cause(self, database: Database) -> None:
        with pytest.raises(StateError) as caught, database.write_transaction() as link:
            link.execute("NONSENSE")

        assert isinstance(caught.value.__cause__, sqlite3.OperationalError)
        with database.write_transaction():
            pass

    def test_a_full_disk_is_reported_and_loses_nothing(self, database: Database) -> None:
        with database.write_transaction() as link:
            link.execute("INSERT INTO store_turn VALUES ('/p', 1)")

        def fills_the_disk() -> None:
            with database.write_transaction() as link:
                link.execute(f"PRAGMA max_page_count = {link.execute('PRAGMA page_count').fetchone()[0]}")
                link.executemany("INSERT INTO store_turn VALUES (hex(randomblob(400)), ?)", [(n,) for n in range(99)])

        with pytest.raises(StateError, match="disk is full"):
            fills_the_disk()

        with database.read_transaction() as link:
            assert link.execute("SELECT count(*) FROM store_turn").fetchone()[0] == 1

    def test_no_room_for_the_index_of_the_log_is_a_full_disk_too(self, tmp_path: Path) -> None:
        error = sqlite3.OperationalError("disk I/O error")
        error.sqlite_errorcode = sqlite3.SQLITE_IOERR_SHMSIZE

        assert isinstance(connection.as_state_error(error, tmp_path / "echod.db"), DatabaseFullError)


def replace_file(path: Path) -> None:
    path.rename(path.with_name("moved"))
    fill(path, 1)


class TestLoss:
    """A process that has lost its database must stop instead of working into nowhere."""

    LOSSES = (
        pytest.param(lambda path: path.unlink(), id="deleted"),
        pytest.param(lambda path: path.rename(path.with_name("moved")), id="moved"),
        pytest.param(replace_file, id="replaced"),
        pytest.param(lambda path: path.with_name("echod.db-wal").unlink(), id="log deleted"),
    )

    @pytest.mark.parametrize("lose", LOSSES)
    def test_it_is_noticed_and_nothing_more_is_acknowledged(self, path: Path, lose: Callable[[Path], object]) -> None:
        with Database.open(path) as database:
            queue = make_queue(database)
            queue.put(need(), NOW)
            assert database.is_current()

            lose(path)

            assert not database.is_current()
            with pytest.raises(DatabaseLostError, match="Start echod again"):
                queue.put(need(role="workers"), NOW)

    def test_others_coming_and_going_are_no_loss(self, path: Path) -> None:
        with Database.open(path) as database:
            for number in range(3):
                with Database.open(path) as other:
                    make_queue(other).put(need(role=f"r{number}"), NOW)
                subprocess.run(
                    [sys.executable, "-c", f"import sqlite3; sqlite3.connect({str(path)!r}).execute('VACUUM')"],
                    check=True,
                    timeout=60,
                )
            assert database.is_current()
            assert QueueView(database).count_by_state()[JobState.QUEUED] == 3


def write_zeros(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(bytes(3 * 4096))


def truncate(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def write_text(path: Path) -> None:
    path.write_text("this is not a database, it only has its name " * 200)


def cut_header(path: Path) -> None:
    os.truncate(path, 57)


DAMAGES = pytest.mark.parametrize("damage", [write_zeros, truncate, write_text, cut_header])


class TestDamage:
    @DAMAGES
    def test_it_is_moved_aside_rebuilt_and_reported(self, path: Path, damage: Callable[[Path], None]) -> None:
        fill(path)
        damage(path)
        content = path.read_bytes()

        opened = open_checked(path, lambda: NOW)

        with opened.database as database:
            assert make_queue(database).put(need(), NOW) is not None
        assert opened.rebuild is not None
        assert opened.rebuild.rebuilt_at == NOW
        assert opened.rebuild.reason
        assert opened.rebuild.moved_to.name == "echod.db.damaged-20270115T080000Z"
        assert opened.rebuild.moved_to.read_bytes() == content
        assert list_damaged_copies(path) == (opened.rebuild.moved_to,)
        assert opened.rebuild.moved_to.stat().st_mode & 0o777 == 0o600

    @DAMAGES
    def test_a_sound_database_follows(self, path: Path, damage: Callable[[Path], None]) -> None:
        fill(path)
        damage(path)
        open_checked(path, lambda: NOW).database.close()

        again = open_checked(path, lambda: NOW)

        again.database.close()
        assert again.rebuild is None

    def test_a_command_leaves_the_repair_to_the_service(self, path: Path) -> None:
        fill(path)
        write_text(path)

        for opening in (Database.open, Database.open_readonly):
            with pytest.raises(DatabaseDamagedError, match="Start echod"):
                opening(path)
        assert not list_damaged_copies(path)

    def test_an_empty_file_is_a_new_database(self, path: Path) -> None:
        path.parent.mkdir()
        path.touch()

        opened = open_checked(path, lambda: NOW)

        with opened.database as database:
            assert make_queue(database).put(need(), NOW) == 1
        assert opened.rebuild is None

    def test_the_log_of_a_database_that_was_moved_aside_is_not_replayed_into_the_new_one(self, path: Path) -> None:
        """As after a kill in the middle of moving: the database was moved, its log was not."""
        with crashed_writer(path):
            path.unlink()

            with open_checked(path, lambda: NOW).database as database:
                assert QueueView(database).list_jobs() == ()

    def test_a_process_that_still_has_it_open_loses_it(self, path: Path) -> None:
        fill(path)
        with Database.open(path) as holder:
            make_queue(holder).put(need(), NOW)
            write_zeros(path)

            opened = open_checked(path, lambda: NOW)

            with opened.database as database:
                assert opened.rebuild is not None
                assert opened.rebuild.moved_to.with_name(f"{opened.rebuild.moved_to.name}-wal").exists()
                with pytest.raises(DatabaseLostError):
                    make_queue(holder).put(need("b"), NOW)
                assert QueueView(database).list_jobs() == ()

    def test_only_the_last_few_are_kept(self, path: Path) -> None:
        fill(path, 1)
        minutes = iter([NOW + 60 * minute for minute in range(5)])
        for _ in range(5):
            write_text(path)
            open_checked(path, lambda: next(minutes)).database.close()

        assert [copy.name[-7:] for copy in list_damaged_copies(path)] == ["080200Z", "080300Z", "080400Z"]

    def test_two_in_one_second_do_not_overwrite_each_other(self, path: Path) -> None:
        fill(path, 1)
        for _ in range(2):
            write_text(path)
            open_checked(path, lambda: NOW).database.close()

        assert len(list_damaged_copies(path)) == 2

    def test_of_many_processes_one_rebuilds(self, path: Path) -> None:
        """The second one must not move the first one's new database aside."""
        fill(path)
        write_text(path)
        answers = open_concurrently(
            4,
            path,
            "opened = open_checked(path, lambda: 1.8e9); database = opened.database\n"
            "print('rebuilt' if opened.rebuild else 'found sound')",
        )

        assert sorted(answers) == ["found sound", "found sound", "found sound", "rebuilt"]
        with Database.open(path) as database, database.read_transaction() as link:
            assert link.execute("SELECT count(*) FROM store_turn").fetchone()[0] == 4
        assert len(list_damaged_copies(path)) == 1


@contextmanager
def crashed_writer(path: Path) -> Iterator[None]:
    """A database whose last writer died without closing it: its content is still in the log."""
    program = (
        "import os, signal; from pathlib import Path; from echod.state.database import Database\n"
        "from tests.state.examples import NOW, make_queue, need\n"
        f"database = Database.open(Path({str(path)!r}))\n"
        "make_queue(database).put(need(), NOW)\n"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    ended = subprocess.run([sys.executable, "-c", program], check=False, timeout=60)
    assert ended.returncode == -signal.SIGKILL
    assert path.with_name("echod.db-wal").stat().st_size > 0
    yield


class TestReading:
    def test_nothing_is_there_before_anything_was_recorded(self, path: Path) -> None:
        assert Database.open_readonly(path) is None
        assert not path.parent.exists()

        path.parent.mkdir()
        path.touch()
        assert Database.open_readonly(path) is None

    def test_with_the_daemon_down_it_leaves_no_trace(self, path: Path) -> None:
        fill(path, 2)

        database = Database.open_readonly(path)

        assert database is not None
        with database:
            assert QueueView(database).count_by_state()[JobState.QUEUED] == 2
            assert file_names(path) == {"echod.db"}
        assert file_names(path) == {"echod.db"}

    def test_with_the_daemon_up_it_sees_the_latest(self, path: Path) -> None:
        with Database.open(path) as writer:
            reader = Database.open_readonly(path)
            assert reader is not None
            with reader:
                make_queue(writer).put(need(), NOW)
                assert QueueView(reader).count_by_state()[JobState.QUEUED] == 1
                assert writer.is_current()
            assert writer.is_current()

    def test_after_a_crash_it_sees_what_was_acknowledged(self, path: Path) -> None:
        with crashed_writer(path):
            before = file_names(path)

            database = Database.open_readonly(path)

            assert database is not None
            with database:
                assert QueueView(database).count_by_state()[JobState.QUEUED] == 1
            assert file_names(path) == before

    def test_it_cannot_write(self, path: Path) -> None:
        fill(path, 1)
        database = Database.open_readonly(path)
        assert database is not None

        with database, pytest.raises(StateError, match="cannot be written"):
            make_queue(database).put(need(), NOW)

    def test_a_writer_that_came_meanwhile_is_not_taken_for_damage(self, path: Path) -> None:
        """Without a log nothing is locked, so the file may change under the reader."""
        fill(path)
        database = Database.open_readonly(path)
        assert database is not None
        with database:
            write_zeros(path)
            with pytest.raises(DatabaseBusyError):
                QueueView(database).list_jobs(limit=1000)

    @pytest.mark.skipif(AS_ROOT, reason="root may write everything")
    def test_a_read_only_directory_can_still_be_read(self, path: Path) -> None:
        fill(path, 1)
        path.parent.chmod(0o500)
        try:
            database = Database.open_readonly(path)
            assert database is not None
            with database:
                assert QueueView(database).count_by_state()[JobState.QUEUED] == 1
            with pytest.raises(StateError, match="cannot be"):
                Database.open(path)
        finally:
            path.parent.chmod(0o700)


def test_no_descriptor_of_the_file_is_opened_behind_the_back_of_sqlite(path: Path) -> None:
    """Closing one would drop the locks SQLite holds: another process could then write in our transaction."""
    with Database.open(path) as database, database.write_transaction() as link:
        link.execute("INSERT INTO store_turn VALUES ('/p', 1)")
        database.is_current()
        list_damaged_copies(path)
        probe = (
            f"import sqlite3; link = sqlite3.connect({str(path)!r}, timeout=0, isolation_level=None)\n"
            "try:\n    link.execute('BEGIN IMMEDIATE')\nexcept sqlite3.OperationalError as error:\n    print(error)"
        )
        result = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True, timeout=60)

    assert result.stdout.strip() == "database is locked"
