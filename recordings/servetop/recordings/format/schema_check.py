"""Detects schema objects other than plain tables, plain indexes and servetop's views: others could run forever."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable

from servetop.recordings.format.views import VIEWS

_COLUMN = r'"?\w+"?(?: (?:INTEGER|REAL|TEXT|BLOB|NUMERIC))?(?: PRIMARY KEY)?(?: NOT NULL)?(?: DEFAULT -?[\d.]+)?'
_TABLE = re.compile(rf'CREATE TABLE "?(\w+)"? ?\(\s*{_COLUMN}(?:,\s*{_COLUMN})*\s*\)')
"""Columns without constraints, expressions or collations, as created by servetop and ANALYZE."""
_INDEX = re.compile(r'CREATE INDEX "?(\w+)"? ON "?\w+"? ?\(([\w", ()]+)\)')
_CALL = re.compile(r"(\w+) ?\(")
_INTERNAL = "sqlite_autoindex_"
_MAX_SQL_CHARS = 100_000


def unexpected_object(rows: Iterable[tuple[object, ...]]) -> str | None:
    """Describe the first object that is neither a plain table or index nor a view of servetop; None if there is none.

    `rows` are (type, name, sql) of sqlite_master. Unknown plain tables are allowed: a newer minor version may add them.
    """
    names: set[object] = set()
    for kind, name, sql in rows:
        if not isinstance(kind, str) or not isinstance(name, str) or name in names:
            return f"an object {name!r:.60} that is a duplicate or has no type"
        names.add(name)
        if not (sql is None and kind == "index" and name.startswith(_INTERNAL)) and not _is_plain(kind, name, sql):
            return f"the {kind:.20} {name:.60}, which servetop does not create"
    return None


def schema_rows(connection: sqlite3.Connection) -> list[tuple[object, ...]]:
    """Return (type, name, sql) of each object in the file."""
    return connection.execute("SELECT type, name, sql FROM sqlite_master").fetchall()


def _is_plain(kind: str, name: str, sql: object) -> bool:
    if not isinstance(sql, str) or len(sql) > _MAX_SQL_CHARS:
        return False
    if kind == "view":
        return VIEWS.get(name) == sql
    if kind == "table":
        table = _TABLE.fullmatch(sql)
        return table is not None and table[1] == name
    index = _INDEX.fullmatch(sql) if kind == "index" else None
    return index is not None and index[1] == name and {call.lower() for call in _CALL.findall(index[2])} <= {"coalesce"}
