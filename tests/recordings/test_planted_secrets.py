"""Secrets planted wherever a user, an engine or a server can put them are not recorded."""

import itertools
import json
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from servetop.analysis.summary.summary_json import summary_json
from servetop.core.clock import ClockAnchor
from servetop.core.config import ConnectionConfig, EngineConfig, RunConfig, WorkloadConfig
from servetop.core.events import LogLine, Note, RequestRecord, RequestStatus, RunEnd, Severity, StageChange
from servetop.core.interfaces.run_source import EngineFacts, RunHeader
from servetop.core.tick import Tick
from servetop.recordings.library.paths import new_recording_path
from servetop.recordings.read.reader import RecordingReader
from servetop.recordings.write.recorder import Recorder
from servetop.recordings.write.tick_transaction import TickTransaction
from servetop.reports.summary.summary import run_summary

PLANTED = 60
HEADERS = (
    "Authorization", "X-Api-Key", "x-goog-api-key", "Ocp-Apim-Subscription-Key", "CF-Access-Client-Secret",
    "X-Vault-Token", "X-Amz-Security-Token", "Private-Token", "Modal-Key", "X-Token", "X-Auth", "X-Tenant",
)  # fmt: skip
VARIABLES = (
    "MY_ENDPOINT_KEY", "HF_TOKEN", "OPENAI_API_KEY", "AWS_SECRET_ACCESS_KEY", "DB_PASSWORD", "VAULT_PASSPHRASE",
    "GCP_CREDENTIALS", "GATEWAY_AUTH",
)  # fmt: skip


@pytest.fixture
def secrets() -> Callable[[], str]:
    """Returns a new secret at each call."""
    numbers = itertools.count()
    return lambda: f"zq{next(numbers):03d}Plant"


def planted_config(secret: Callable[[], str], environment: dict[str, str]) -> RunConfig:
    """A run with a secret in every setting."""
    environment |= {name: secret() for name in VARIABLES}
    environment["HTTPS_PROXY"] = f"http://proxyuser:{secret()}@proxy:3128"
    environment["DATABASE_URL"] = f"postgres://me:{secret()}@db/x"
    environment["ODD_NAME"] = secret()
    arguments = (
        "--ssl-keyfile-password", secret(), f"--conf-token={secret()}", "--hf-token", secret(), "--api-key", secret(),
        secret(), "--speculative-config", json.dumps({"model": "m", "token": secret(), "deep": [{"apiKey": secret()}]}),
        "--env", f"WANDB_API_KEY={secret()}", "-e", f"MY_PASSWORD={secret()} with words",
        "--otlp-endpoint", f"https://collector/v1?api_key={secret()}&sig={secret()}",
        "--header", f"X-Internal: {secret()}", "--max-num-batched-tokens", "8192",
    )  # fmt: skip
    engine = EngineConfig(
        name="vllm",
        url=f"http://user:{secret()}@gpu7:8000",
        more_urls=(f"https://{secret()}@gpu8:8000",),
        front_door=f"http://door/?access_token={secret()}",
        metrics_url=f"http://me:{secret()}@prom:9090/?token={secret()}",
        api_key_env="MY_ENDPOINT_KEY",
        extra_args=arguments,
        command=("env", f"S3_SECRET={secret()}", "vllm", "serve", "--admin-password", secret()),
        connection=ConnectionConfig(proxy=f"http://a:{secret()}@proxy:3128", client_key="/etc/tls/key.pem"),
    )
    workload = WorkloadConfig(
        headers={"Accept": "text/event-stream", "X-Request-Id": "run-7"}
        | {name: f"Bearer {secret()}" if name == "Authorization" else secret() for name in HEADERS}
        | {"Cookie": f"session={secret()}; theme={secret()}"},
        header_env={"X-From-Env": "ODD_NAME"},
        extra_body={"max_tokens": 5, "user_token": secret(), "tools": [{"auth": {"password": secret()}}]},
    )
    metadata = {"note": f"uses sk-{secret()}{secret()} and hf_{secret()}", "db_password": secret(), "owner": "me"}
    return RunConfig(engine=engine, workload=workload, metadata=metadata, label=f"sk-{secret()}-run")


def texts_of_others(secret: Callable[[], str]) -> list[str]:
    """Secrets unknown to servetop, in an engine's log or a server's error."""
    return [
        f"Namespace(port=80, api_key=['{secret()}'], root_password='{secret()}')",
        f"vllm serve m --ssl-keyfile-password {secret()} --port 80",
        f"argv: ['serve', '--conf-token', '{secret()}', '--port', '80']",
        f"request headers: Authorization: Basic {secret()}",
        f"Set-Cookie: sid={secret()}; Path=/",
        f"pulling https://robot:{secret()}@registry/m?x=1&sig={secret()}",
        json.dumps({"message": json.dumps({"clientSecret": secret(), "max_tokens": 5})}),
        f"AWS_SESSION_TOKEN={secret()} exported",
    ]


def batch_of(
    config: RunConfig, environment: dict[str, str], make_request: Callable[..., RequestRecord]
) -> TickTransaction:
    """Texts of engines, servers and servetop about such a run, which repeat the configuration."""
    command = " ".join(["vllm", "serve", *config.engine.command, *config.engine.extra_args])
    echoes = [
        command,
        f"args: {list(config.engine.extra_args)}",
        f"non-default args: {json.dumps(dict(itertools.pairwise(config.engine.extra_args)))}",
        *(f"environment: {name}={value}" for name, value in environment.items()),
        *(f"{value} was read" for value in environment.values()),
        *(f"bad header b'{name}': b'{value}'" for name, value in config.workload.headers.items()),
        f"body was {json.dumps(json.dumps(config.workload.extra_body))}",
        f"GET {config.engine.metrics_url} via {config.engine.connection.proxy} to {config.engine.front_door}",
    ]
    echoes = [each for each in echoes if "run-7" not in each and "text/event-stream" not in each]
    stage = StageChange(at=0.0, index=0, label=config.label, request_rate=1.0, max_concurrency=None, max_num_seqs=None)
    return TickTransaction(
        stages=[stage],
        log_lines=[LogLine(at=0.0, text=each) for each in echoes],
        notes=[Note(at=0.0, severity=Severity.ERROR, source="engine", text=each) for each in echoes],
        requests=[
            make_request(number, 0.0, status=RequestStatus.ERROR, error=f"HTTP 401: {each}")
            for number, each in enumerate(echoes)
        ],
    )


def test_none_of_60_planted_secrets_is_found_in_a_recording_its_name_its_log_or_its_summary(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    secrets: Callable[[], str],
    make_request: Callable[..., RequestRecord],
    make_tick: Callable[..., Tick],
) -> None:
    environment: dict[str, str] = {}
    config = planted_config(secrets, environment)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    texts = texts_of_others(secrets)
    count = int(secrets()[2:5])
    assert count >= PLANTED
    anchor = ClockAnchor(origin_ns=0, wall_epoch_s=1_700_000_000.0)
    path = new_recording_path(config, 1_700_000_000.0, folder=tmp_path)
    recorder = Recorder.create(path, RunHeader(config=config, anchor=anchor, host=dict(environment)))
    facts = EngineFacts(name="vllm", title="vLLM", url=config.engine.url, replica_urls=config.engine.more_urls)
    recorder.set_engine(facts)
    launched = ["vllm", "serve", *config.engine.command, *config.engine.extra_args]
    url = ["--url", str(config.engine.url), "--header", f"X-Vault-Token: {config.workload.headers['X-Vault-Token']}"]
    recorder.set_manifest(
        {"command_line": ["servetop", *url], "engine": {"argv": launched, "environment": environment}}
    )
    batch = replace(batch_of(config, environment, make_request), tick=make_tick(0))
    lines = [LogLine(at=0.0, text=each) for each in texts]
    failed = [make_request(900 + number, 0.0, error=each) for number, each in enumerate(texts)]
    recorder.commit(replace(batch, log_lines=[*batch.log_lines, *lines], requests=[*batch.requests, *failed]))
    recorder.commit(TickTransaction(tick=make_tick(1)))
    files = list(tmp_path.iterdir())
    assert path.with_name(f"{path.name}-wal") in files
    contents = [each.read_bytes() for each in files]
    reason = "; ".join(f"{name} {value}" for name, value in environment.items())
    recorder.close(RunEnd(at=0.5, exit_code=1, reason=reason))
    with closing(RecordingReader.open(path)) as reader:
        contents += [path.read_bytes(), json.dumps(summary_json(run_summary(reader))).encode()]
        contents += [each.name.encode() for each in files]
        arguments = reader.header.config.engine.extra_args
        headers = reader.header.config.workload.headers
    found = [number for number in range(count) if any(b"zq%03dPlant" % number in each for each in contents)]
    assert found == []
    assert arguments[-2:] == ("--max-num-batched-tokens", "8192")
    assert (headers["Accept"], headers["X-Request-Id"], headers["X-Tenant"]) == (
        "text/event-stream", "run-7", "[redacted]",
    )  # fmt: skip


def test_other_users_cannot_read_a_recording_or_its_log(recorder: Recorder, make_tick: Callable[..., Tick]) -> None:
    recorder.commit(TickTransaction(tick=make_tick(0)))
    files = list(recorder.path.parent.iterdir())
    assert len(files) == 3
    assert {each.stat().st_mode & 0o777 for each in files} == {0o600}
