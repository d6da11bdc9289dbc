"""All kinds of cases."""

from __future__ import annotations

from tests.chaos import engines, hostile, kills, parsers, recordings, surroundings, viewers, web
from tests.chaos.case import Kind

KINDS: dict[str, Kind] = {
    "kill": Kind(run=kills.kill, what="kill -9 of run, sender, engine", unit="kills", whole=1120, quick=36),
    "signal": Kind(run=kills.interrupt, what="SIGINT, SIGTERM, SIGHUP", whole=150, quick=10),
    "freeze": Kind(run=kills.freeze, what="SIGSTOP, then SIGCONT", whole=100, quick=5),
    "viewer": Kind(run=viewers.viewer, what="dashboards ended, and runs behind them", whole=100, quick=3),
    "answers": Kind(run=hostile.answer_modes, what="a server that answers badly", whole=220, quick=30),
    "pages": Kind(run=hostile.page_modes, what="hostile metrics, models, versions", whole=81, quick=14),
    "disk": Kind(run=surroundings.disk_full, what="full disk", whole=60, quick=4),
    "folder": Kind(run=surroundings.recording_gone, what="recording removed or moved", whole=60, quick=4),
    "files": Kind(run=surroundings.few_files, what="low limit of open files", whole=40, quick=2),
    "memory": Kind(run=surroundings.little_memory, what="low limit of memory", whole=40, quick=2),
    "clock": Kind(run=surroundings.clock_steps, what="wall clock set during the run", whole=30, quick=2),
    "environment": Kind(run=surroundings.odd_surroundings, what="odd environments", whole=42, quick=6),
    "permission": Kind(run=surroundings.as_nobody, what="read-only folder, another user", whole=9, quick=3),
    "recording": Kind(
        run=recordings.mutated,
        what="torn and mutated recordings",
        unit="mutated recordings",
        whole=200,
        quick=4,
        seconds=7200,
    ),
    "parser": Kind(
        run=parsers.inputs, what="SSE, HTTP and metrics pages, damaged", unit="parser inputs", whole=100, quick=3
    ),
    "workers": Kind(run=kills.workers, what="kill -9 with several senders", unit="kills", whole=50, quick=3),
    "web": Kind(run=web.pages, what="pages, their server and viewers ended", whole=50, quick=3),
    "engines": Kind(run=engines.behind_a_proxy, what="honest engines behind a proxy that counts", whole=80, quick=4),
    "tls": Kind(run=hostile.tls_faults, what="TLS faults", whole=28, quick=7),
}
"""By the name that --only takes."""
