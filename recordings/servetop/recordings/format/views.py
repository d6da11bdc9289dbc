"""The views of the file: the requests that count, latencies of stages and rates of the engine, for any SQLite tool.

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

VIEWS = {"counted_request": _COUNTED_REQUEST, "stage_latency": _STAGE_LATENCY, "engine_rate": _ENGINE_RATE}
"""The statement of each view, as SQLite keeps it."""


def add_views(connection: sqlite3.Connection) -> None:
    """Create the views that a file lacks, within the caller's transaction."""
    known = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'view'")}
    for name, statement in VIEWS.items():
        if name not in known:
            connection.execute(statement)
