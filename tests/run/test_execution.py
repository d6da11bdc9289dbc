"""How a run is executed reaches its process with the setup."""

from __future__ import annotations

import os

from servetop.run.exporter.metrics_socket import listening_socket
from servetop.run.process.execution import Execution


def test_a_run_without_metrics_inherits_nothing() -> None:
    assert Execution().inherited == ()
    assert Execution.of_setup(Execution().setup).metrics is None


def test_the_port_of_the_metrics_is_inherited_and_closed_to_later_processes() -> None:
    with listening_socket("127.0.0.1", 0) as listening:
        execution = Execution(metrics=listening)
        assert execution.inherited == (listening.fileno(),)
        received = os.dup(listening.fileno())
        found = Execution.of_setup({**execution.setup, "metrics": received}).metrics
        assert found is not None
        with found:
            assert found.getsockname() == listening.getsockname()
            assert not found.get_inheritable()
