"""Ray Serve LLM's command line, responses, metrics and log, as captured from a real one."""

from __future__ import annotations

import gzip
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from servetop.core.config import EngineConfig
from servetop.core.errors import EngineError
from servetop.core.events import EngineSample
from servetop.core.system.package_data import package_path
from servetop.engines.adapters.ray_serve import READY_LINE, SCRIPT, RayServeEngine
from servetop.engines.control.control_client import HttpResult
from servetop.engines.engine import LaunchCommand

DATA = Path(__file__).parent / "data" / "ray-serve-llm"


def body(name: str) -> bytes:
    return (DATA / name).read_bytes().replace(b"\r\n", b"\n").partition(b"\n\n")[2]


def page(name: str) -> dict[str, bytes]:
    return {"/metrics": gzip.decompress((DATA / name).read_bytes())}


ANSWERS = {
    "/-/healthz": HttpResult(200, body("healthz.txt")),
    "/-/routes": HttpResult(200, body("routes.txt")),
    "/v1/models": HttpResult(200, body("v1_models.txt")),
}


def launched(*command: str, extra: str = "", most: int | None = None) -> LaunchCommand:
    config = EngineConfig(
        name="ray-serve-llm", model="org/m", command=command, extra_args=tuple(extra.split()), max_num_seqs=most
    )
    return RayServeEngine().launch(config, port=8123)


def test_a_python_with_ray_runs_our_app_with_metrics_on_a_port_of_their_own() -> None:
    command = launched(sys.executable, extra="--accelerator cpu", most=8)
    script = package_path("servetop.engines", SCRIPT)
    words = (
        f"org/m --host 127.0.0.1 --port 8123 --metrics-port {command.metrics_port} --max-num-seqs 8 --accelerator cpu"
    )
    assert " ".join(command.argv) == f"{sys.executable} {script} {words}"
    assert command.ready_line == READY_LINE
    assert f'print("{READY_LINE}", flush=True)' in script.read_text(encoding="utf-8")


def test_another_app_gets_the_same_options() -> None:
    command = launched(sys.executable, "my_app.py", extra="--metrics-port 18099")
    assert command.argv[:3] == (sys.executable, "my_app.py", "org/m")
    assert command.metrics_port == 18099
    assert command.ready_line == ""


@pytest.mark.skipif(find_spec("ray") is not None, reason="Ray is here")
def test_a_missing_ray_is_reported_with_install_help() -> None:
    with pytest.raises(EngineError, match=r"pip install 'ray\[serve,llm\]'.*--engine-command"):
        launched()
    with pytest.raises(EngineError, match="/no/such cannot be found"):
        launched("/no/such")


def test_it_is_detected_by_its_proxy_and_reports_model_and_context() -> None:
    engine = RayServeEngine()
    assert engine.match_score(ANSWERS) == 2
    assert engine.match_score({**ANSWERS, "/-/routes": HttpResult(404)}) == 0
    assert (engine.facts(ANSWERS).models, engine.facts(ANSWERS).max_model_len) == (("tiny",), 1024)
    assert engine.metrics_url("http://gpu7:8000") == "http://gpu7:8080"


def test_its_metrics_page_may_be_two_report_intervals_old(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = RayServeEngine()
    monkeypatch.delenv("RAY_metrics_report_interval_ms", raising=False)
    assert (engine.page_age(managed=True), engine.page_age(managed=False)) == (2.0, 10.0)
    monkeypatch.setenv("RAY_metrics_report_interval_ms", "5000")
    assert engine.page_age(managed=True) == 10.0


def test_a_loaded_server_is_read_number_for_number() -> None:
    """Counters that are not on the page read 0; sums of histograms, which Ray makes up, are left out."""
    reader = RayServeEngine.metric_map
    assert reader.sample(page("metrics_loaded.txt.gz"), start=1.0, end=1.5) == EngineSample(
        scrape_start=1.0, scrape_end=1.5, running=8.0, waiting=16.0, requests_finished_total=17.0,
        kv_blocks_used=32.0, kv_blocks_total=63.0, kv_usage=32 / 63,  # 64 blocks, of which one is the null block
        prompt_tokens_total=177.0, generation_tokens_total=5362.0, preemptions_total=4.0,
        prefix_cache_hits_total=0.0, prefix_cache_queries_total=0.0,
        requests_ended_total=17.0, requests_failed_total=0.0,
    )  # fmt: skip
    facts = reader.facts(page("metrics_loaded.txt.gz"))
    assert (facts.kv_blocks_total, facts.block_size) == (63, 32)


def test_a_ray_that_has_not_served_yet_has_no_numbers_and_no_trouble() -> None:
    sample = RayServeEngine.metric_map.sample({"/metrics": b"ray_node_cpu_count 4\n"}, start=0.0, end=0.0)
    assert sample is not None
    assert (sample.running, sample.preemptions_total) == (None, 0.0)


def test_the_cause_of_a_captured_failure_is_one_line() -> None:
    reason = RayServeEngine().failure_reason((DATA / "fail_device_string.log").read_text().splitlines())
    assert reason == "vLLM does not find its platform: is it built for this machine?"
    boot = gzip.decompress((DATA / "app.log.gz").read_bytes()).decode().splitlines()
    assert RayServeEngine().failure_reason(boot) is None
