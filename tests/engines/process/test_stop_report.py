"""A stop report names what the user must clean up."""

from servetop.engines.process.stop_report import StopReport


def test_a_clean_stop_and_an_attached_engine_have_no_trouble() -> None:
    assert StopReport(port_free=True, gpu_memory=0).trouble is None
    assert StopReport().trouble is None


def test_remaining_processes_are_reported_before_memory_and_port() -> None:
    report = StopReport(leftover_pids=(7, 8), gpu_memory=1 << 30, port_free=False)
    assert (report.trouble or "").endswith("kill -9 7 8")


def test_gpu_memory_is_reported_in_gib() -> None:
    assert "2.5 GiB" in (StopReport(gpu_memory=5 << 29, port_free=True).trouble or "")


def test_a_port_that_is_still_in_use_is_reported() -> None:
    assert "port" in (StopReport(port_free=False).trouble or "")
