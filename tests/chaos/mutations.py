"""Damages recordings as disks, crashes and attackers do: bytes, pages, logs, rows, values and the schema itself."""

from __future__ import annotations

import contextlib
import functools
import os
import random
import shutil
import sqlite3
import tempfile
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from servetop.core.events import RequestRecord, RunEnd
from servetop.recordings.format.schema import REQUEST
from servetop.recordings.read.open import open_for_reading
from servetop.recordings.read.reader import RecordingReader
from servetop.recordings.read.table_reader import TableReader
from servetop.recordings.write.recorder import Recorder
from servetop.recordings.write.tick_transaction import TickTransaction
from tests.chaos.hostile_text import HOSTILE

PAGE = 4096
GOLDEN = Path(__file__).parents[1] / "golden"
BASES = ("dies.servetop", "vllm.servetop", "without_metrics.servetop")
VALUES: tuple[object, ...] = (
    None, 0, 1, -1, 2**31, 2**63 - 1, -(2**63), 0.5, 1e308, -1e308, 9e999, -9e999, "", "x", HOSTILE.text, "NaN", "inf",
    "[1]", "{}", "[" * 50_000, '{"pid": -1}', "null", b"", b"\x00", b"\xff" * 9, b"\x00" * 100_000, "1" * 400,
)  # fmt: skip
ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n{})"
HOSTILE_SCHEMA = (
    f"CREATE VIEW endless AS {ENDLESS.format('')} SELECT i FROM n",
    f"ALTER TABLE tick RENAME TO tick_; CREATE VIEW tick AS {ENDLESS.format('')} SELECT tick_.* FROM n, tick_",
    f"ALTER TABLE run RENAME TO run_; CREATE VIEW run AS {ENDLESS.format('')} SELECT run_.* FROM n, run_",
    "CREATE TRIGGER surprise AFTER UPDATE ON run BEGIN DELETE FROM tick; END",
    "DROP TABLE request",
    "DROP TABLE tick",
    "DROP TABLE stage",
    "DROP TABLE note",
    "DELETE FROM run",
    "INSERT INTO run SELECT 2, origin_ns, wall_epoch_s, config, versions, host, engine, pid, writer, end_at, exit_code,"
    " end_reason, steady, headline FROM run",
    "DELETE FROM tick WHERE seq % 3 = 0",
    "UPDATE tick SET number = number + 9223372036854775000",
    "UPDATE tick SET number = -number",
    "UPDATE request SET sent = sent + 1e15",
    "CREATE TABLE tick2 AS SELECT * FROM tick; DROP TABLE tick; ALTER TABLE tick2 RENAME TO tick",
    "ALTER TABLE request RENAME COLUMN status TO state",
    f"INSERT INTO stage (number) SELECT i FROM ({ENDLESS.format(' LIMIT 20000')} SELECT i FROM n)",
    "UPDATE note SET text = zeroblob(30000000)",
    "PRAGMA user_version = 2147483647",
    "PRAGMA user_version = -5",
    "PRAGMA application_id = 1",
)  # fmt: skip


OLD = "as it is"
"""Says of a recording that its ticks have no checksum."""
IN_SQL = ("value", "schema")
"""Ways that leave a sound database with other content; all others damage the file below it."""


def base(chance: random.Random, file: Path) -> str:
    """Put a sound recording there, and say what it is: of an older format, of today's, or as a killed run leaves it."""
    name = chance.choice(BASES)
    log = file.with_name(file.name + "-wal")
    match chance.choice(("old", "today", "today", "log")):
        case "old":
            shutil.copyfile(GOLDEN / name, file)
            return f"{name} {OLD}"
        case "today":
            file.write_bytes(_written_anew(name).closed)
            return f"{name} rewritten"
        case _:
            file.write_bytes(_written_anew(name).growing)
            log.write_bytes(_written_anew(name).log)
            return f"{name} with a log"


@dataclass(frozen=True, slots=True)
class WrittenAnew:
    """The bytes of a recording in today's format, before its end (file and log) and after."""

    growing: bytes
    log: bytes
    closed: bytes


@functools.cache
def _written_anew(name: str) -> WrittenAnew:
    """An older recording's events by today's recorder, in a process that has ended since, as a killed run's has."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        child = os.fork()
        if child == 0:
            try:
                _write_anew(name, folder)
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        file = folder / "run.servetop"
        growing, log = ((folder / f"growing{suffix}").read_bytes() for suffix in ("", "-wal"))
        return WrittenAnew(growing, log, file.read_bytes())


def _write_anew(name: str, folder: Path) -> None:
    """A batch a tick; `growing` and its log are copies of the file before its end."""
    with contextlib.closing(RecordingReader.open(GOLDEN / name)) as old:
        update, rows = old.poll(), TableReader(open_for_reading(GOLDEN / name), GOLDEN / name)
        requests: deque[RequestRecord] = deque(rows.events(REQUEST))
        file = folder / "run.servetop"
        recorder = Recorder.create(file, old.header)
        recorder.commit(TickTransaction(notes=update.notes, stages=old.stages(), log_lines=update.log_lines))
        for tick in old.ticks():
            ended = tick.client.ok + tick.client.failed + tick.client.cancelled
            few = [requests.popleft() for _ in range(ended)]
            recorder.commit(
                TickTransaction(tick=tick, requests=few, engine_samples=[tick.engine] if tick.engine else [])
            )
        for suffix in ("", "-wal"):
            shutil.copyfile(f"{file}{suffix}", folder / f"growing{suffix}")
        recorder.close(update.end or RunEnd(at=1.0, exit_code=0, reason=""))


def mutate(chance: random.Random, file: Path) -> str:
    """Damage it in one way; which."""
    log = file.with_name(file.name + "-wal")
    ways = [_flip, _zero_page, _copy_page, _truncate, _cut_page, _insert, _header, _value, _value, _value, _schema]
    if log.exists():
        ways = [_flip_log, _truncate_log, _zero_log, _flip, _truncate]
    way: Callable[[random.Random, Path], None] = chance.choice(ways)
    with contextlib.suppress(sqlite3.Error, ValueError):  # a file that is too short for it by now
        way(chance, file)
    return way.__name__.removeprefix("_").replace("_", " ")


def _rewrite(file: Path, change: Callable[[bytearray], None]) -> None:
    data = bytearray(file.read_bytes())
    change(data)
    file.write_bytes(data)


def _flip(chance: random.Random, file: Path) -> None:
    def change(data: bytearray) -> None:
        for _ in range(chance.choice((1, 1, 3, 20, 200))):
            data[chance.randrange(100, len(data))] = chance.randrange(256)

    _rewrite(file, change)


def _zero_page(chance: random.Random, file: Path) -> None:
    def change(data: bytearray) -> None:
        at = chance.randrange(len(data) // PAGE) * PAGE
        data[max(100, at) : at + PAGE] = bytes(at + PAGE - max(100, at))

    _rewrite(file, change)


def _copy_page(chance: random.Random, file: Path) -> None:
    def change(data: bytearray) -> None:
        pages = len(data) // PAGE
        source, target = (chance.randrange(1, pages) * PAGE for _ in range(2))
        data[target : target + PAGE] = data[source : source + PAGE]

    _rewrite(file, change)


def _truncate(chance: random.Random, file: Path) -> None:
    def change(data: bytearray) -> None:
        del data[chance.randrange(len(data)) :]

    _rewrite(file, change)


def _cut_page(chance: random.Random, file: Path) -> None:
    """At a whole page, or a little behind one, as a copy that was broken off."""

    def change(data: bytearray) -> None:
        del data[chance.randrange(1, len(data) // PAGE) * PAGE + chance.choice((0, 0, 512, 1024)) :]

    _rewrite(file, change)


def _insert(chance: random.Random, file: Path) -> None:
    def change(data: bytearray) -> None:
        at = chance.randrange(len(data))
        data[at:at] = chance.randbytes(chance.choice((1, 10, PAGE)))

    _rewrite(file, change)


def _header(chance: random.Random, file: Path) -> None:
    """Bytes of SQLite's own header."""

    def change(data: bytearray) -> None:
        for _ in range(chance.choice((1, 4))):
            data[chance.randrange(100)] = chance.randrange(256)

    _rewrite(file, change)


def _value(chance: random.Random, file: Path) -> None:
    """An odd value in some rows of one column."""
    with contextlib.closing(sqlite3.connect(file, isolation_level=None)) as connection:
        tables = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        table = chance.choice([*tables, "run", "tick", "request"])
        columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
        where = chance.choice(("", " WHERE seq = (SELECT min(seq) FROM {})", " WHERE seq % 2 = 0")).format(table)
        connection.execute(f"UPDATE {table} SET {chance.choice(columns)} = ?{where}", (chance.choice(VALUES),))


def _schema(chance: random.Random, file: Path) -> None:
    with contextlib.closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.executescript(chance.choice(HOSTILE_SCHEMA))


def _flip_log(chance: random.Random, file: Path) -> None:
    _flip(chance, file.with_name(file.name + "-wal"))


def _truncate_log(chance: random.Random, file: Path) -> None:
    _truncate(chance, file.with_name(file.name + "-wal"))


def _zero_log(chance: random.Random, file: Path) -> None:
    _zero_page(chance, file.with_name(file.name + "-wal"))
