"""Command lines of the docs that name a server run against simulated ones, and end as documented.

Hosts and ports are replaced by those of servers that are started here, a Prometheus server and a collector of OTLP
included; loads are shorter, and where a line opens a dashboard it has --headless in its place.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.docs_lines import SERVERS, lines_of
from tests.cli.docs_runs import assert_line_ran, bounded, command_of, in_shell, write_files
from tests.cli.docs_servers import KEYS, DocsServers

pytestmark = pytest.mark.integration

LINES = lines_of(SERVERS)


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DocsServers]:
    with contextlib.ExitStack() as running:
        yield DocsServers(tmp_path_factory.mktemp("servers"), running)


@pytest.mark.parametrize("page", LINES)
def test_the_lines_of_a_page_run(page: str, servers: DocsServers, tmp_path: Path) -> None:
    write_files(tmp_path)
    servers.write_list(tmp_path / "servers.txt")
    for number, line in enumerate(LINES[page]):
        line = here(servers.replaced(line, page))
        target = {"doctor": "", "run-pairs": " --into pairs"}.get(command_of(line), f" --record {number}.servetop")
        line += "" if "--dry-run" in line else target
        assert_line_ran(line, in_shell(line, tmp_path, KEYS), tmp_path)


def here(line: str) -> str:
    """A line that ends soon, with a port that is free, and the one model that simulated Triton servers have."""
    line = line.replace("--prometheus-port 9099", "--prometheus-port 0")
    return bounded(line).replace("--model my_ensemble", "--model ensemble")
