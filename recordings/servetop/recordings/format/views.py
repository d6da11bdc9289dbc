"""The views of the file: requests that count, chunks, latencies of stages and rates of the engine, for any SQLite tool.

servetop itself reads none of them. A reader refuses a file with any other view, so their text never changes within a
major version of the format.
"""

from __future__ import annotations

import sqlite3

_COUNTED_REQUEST = """CREATE VIEW counted_request AS
WITH
  warm(at) AS (
    SELECT CASE
      WHEN run.counted IS NOT NULL THEN json_extract(run.counted, '$.since')
      WHEN (SELECT count(*) FROM stage WHERE warmup) THEN coalesce(
        (SELECT min(at) FROM stage WHERE seq > (SELECT max(seq) FROM stage WHERE warmup)), 9e999)
    END FROM run),
  left_out(number, since) AS (
    SELECT json_extract(part.value, '$[0]'), coalesce(json_extract(part.value, '$[1]'), -9e999)
    FROM run, json_each(run.counted, '$.without') AS part)
SELECT request.* FROM request
LEFT JOIN left_out ON left_out.number = request.stage
WHERE request.due >= coalesce((SELECT at FROM warm), -9e999)
  AND (left_out.number IS NULL OR request.due < left_out.since)"""

_STAGE_LATENCY = """CREATE VIEW stage_latency AS
WITH
  latency(stage, metric, value) AS (
    SELECT stage, 'ttft', first_token_at - sent FROM counted_request WHERE status = 'ok'
    UNION ALL SELECT stage, 'ttft_from_due', first_token_at - due FROM counted_request WHERE status = 'ok'
    UNION ALL SELECT stage, 'e2el', done_at - sent FROM counted_request WHERE status = 'ok'
    UNION ALL SELECT stage, 'e2el_from_due', done_at - due FROM counted_request WHERE status = 'ok'),
  ranked AS (
    SELECT stage, metric, value,
      row_number() OVER (PARTITION BY stage, metric ORDER BY value) - 1 AS place,
      count(*) OVER (PARTITION BY stage, metric) - 1 AS last
    FROM latency WHERE value IS NOT NULL)
SELECT stage, metric, count(*) AS requests, avg(value) AS mean,
  sum(value * max(0, 1 - abs(place - last * 0.5))) AS p50,
  sum(value * max(0, 1 - abs(place - last * 0.9))) AS p90,
  sum(value * max(0, 1 - abs(place - last * 0.99))) AS p99,
  max(value) AS max
FROM ranked GROUP BY stage, metric"""

_ENGINE_RATE = """CREATE VIEW engine_rate AS
WITH
  scrape AS (
    SELECT seq, (scrape_start + scrape_end) / 2 AS at, running, waiting, kv_usage,
      generation_tokens_total AS generation, prompt_tokens_total AS prompt, preemptions_total AS preempted
    FROM engine_sample),
  pair AS (
    SELECT *, at - lag(at) OVER in_order AS seconds, lag(generation) OVER in_order AS generation_before,
      lag(prompt) OVER in_order AS prompt_before, lag(preempted) OVER in_order AS preempted_before
    FROM scrape WINDOW in_order AS (ORDER BY seq)),
  growth AS (
    SELECT seq, at, seconds, running, waiting, kv_usage,
      generation - iif(generation < generation_before, 0, generation_before) AS generation_tokens,
      prompt - iif(prompt < prompt_before, 0, prompt_before) AS prompt_tokens,
      preempted - iif(preempted < preempted_before, 0, preempted_before) AS preemptions
    FROM pair)
SELECT seq, CAST(at * 4 AS INTEGER) AS tick, at, seconds, running, waiting, kv_usage,
  generation_tokens, prompt_tokens, preemptions,
  generation_tokens / nullif(seconds, 0) AS generation_tokens_per_s,
  prompt_tokens / nullif(seconds, 0) AS prompt_tokens_per_s
FROM growth"""


def _word(digits: str) -> str:
    """Return the expression for the number that eight hexadecimal digits stand for, the lowest byte first."""
    scales = ((1, 16), (2, 1), (3, 4_096), (4, 256), (5, 1_048_576), (6, 65_536), (7, 268_435_456), (8, 16_777_216))
    return " + ".join(f"{scale} * instr('123456789ABCDEF', substr({digits}, {place}, 1))" for place, scale in scales)


_CHUNK = f"""CREATE VIEW chunk AS
WITH RECURSIVE
  place(request, number, chunks) AS (
    SELECT seq, 0, length(chunk_times) / 4 FROM request WHERE length(chunk_times) >= 4
    UNION ALL SELECT request, number + 1, chunks FROM place WHERE number + 1 < chunks),
  packed AS (
    SELECT place.request, request.stage, place.number, hex(substr(chunk_times, 4 * number + 1, 4)) AS micros,
      CASE hex(substr(chunk_tokens, 1, 1))
        WHEN '31' THEN hex(substr(chunk_tokens, number + 2, 1)) || '000000'
        WHEN '34' THEN hex(substr(chunk_tokens, 4 * number + 2, 4)) END AS tokens
    FROM place CROSS JOIN request ON request.seq = place.request)
SELECT request, stage, number,
  ({_word("micros")}) / 1e6 AS seconds,
  CASE WHEN tokens IS NULL THEN 1 ELSE {_word("tokens")} END AS tokens
FROM packed"""

_STAGE_TOKEN_LATENCY = """CREATE VIEW stage_token_latency AS
WITH
  piece AS MATERIALIZED (
    SELECT chunk.* FROM chunk JOIN counted_request ON counted_request.seq = chunk.request WHERE status = 'ok'),
  carried AS (
    SELECT request, sum(tokens) AS tokens, sum(iif(number = 0, tokens, 0)) AS first FROM piece GROUP BY request),
  finished AS (
    SELECT seq, stage, done_at - first_token_at AS seconds, output_tokens - coalesce(first, 1) AS later,
      coalesce(token_source = 'disputed' OR output_tokens - coalesce(tokens, 0) <= max(1, 0.02 * output_tokens), 0)
        AS known
    FROM counted_request LEFT JOIN carried ON carried.request = counted_request.seq WHERE status = 'ok'),
  latency(stage, metric, value, weight) AS (
    SELECT stage, 'tpot', seconds / later, 1 FROM finished WHERE known AND later > 0 AND seconds IS NOT NULL
    UNION ALL SELECT finished.stage, 'itl', piece.seconds / piece.tokens, piece.tokens
    FROM piece JOIN finished ON finished.seq = piece.request
    WHERE known AND piece.number > 0 AND piece.tokens > 0),
  counted AS (
    SELECT stage, metric, value, sum(weight) AS weight FROM latency
    WHERE stage IN (SELECT stage FROM finished GROUP BY stage HAVING sum(NOT known) <= 0.01 * count(*))
    GROUP BY stage, metric, value),
  ranked AS (
    SELECT *, sum(weight) OVER (PARTITION BY stage, metric ORDER BY value) AS upto,
      sum(weight) OVER (PARTITION BY stage, metric) - 1 AS last
    FROM counted)
SELECT stage, metric, sum(weight) AS count, sum(value * weight) / sum(weight) AS mean,
  sum(value * (min(1, max(0, upto - last * 0.5)) - min(1, max(0, upto - weight - last * 0.5)))) AS p50,
  sum(value * (min(1, max(0, upto - last * 0.9)) - min(1, max(0, upto - weight - last * 0.9)))) AS p90,
  sum(value * (min(1, max(0, upto - last * 0.99)) - min(1, max(0, upto - weight - last * 0.99)))) AS p99,
  max(value) AS max
FROM ranked GROUP BY stage, metric"""

VIEWS = {
    "counted_request": _COUNTED_REQUEST,
    "stage_latency": _STAGE_LATENCY,
    "engine_rate": _ENGINE_RATE,
    "chunk": _CHUNK,
    "stage_token_latency": _STAGE_TOKEN_LATENCY,
}
"""The statement of each view, as SQLite keeps it."""


def add_views(connection: sqlite3.Connection) -> None:
    """Create the views that a file lacks, within the caller's transaction."""
    known = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'view'")}
    for name, statement in VIEWS.items():
        if name not in known:
            connection.execute(statement)
