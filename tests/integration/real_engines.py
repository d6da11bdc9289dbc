"""How each real server of these tests is started by hand on a free port, and ended so that nothing of it is left.

Needs the standard library only: the install scripts run it to prove what they made,
`python real_engines.py triton FOLDER`.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

RAY_ENGINE = '{"load_format":"dummy","enforce_eager":true,"block_size":32,"num_gpu_blocks_override":64}'
OFFLINE = {"HF_HUB_OFFLINE": "1", "DO_NOT_TRACK": "1", "VLLM_NO_USAGE_STATS": "1", "VLLM_CPU_KVCACHE_SPACE": "1"}


@dataclass(frozen=True)
class RealEngine:
    """One server, and the paths below its URL that the tests request."""

    name: str
    argv: tuple[str, ...]
    url: str
    model: str
    """As requests name it."""
    ready: str = "/health"
    """Has status 200 once the server is ready."""
    stream: str = "/v1/completions"
    """Responds with a stream to a POST of `body`."""
    body: bytes | None = None
    """None: five tokens by OpenAI's completions."""
    metrics: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 60.0
    """The longest start."""
    reserved: Sequence[socket.socket] = ()
    """Hold its ports until it has ended."""

    @property
    def command(self) -> str:
        """What to type."""
        return " ".join([*(f"{name}={value}" for name, value in self.environment.items()), shlex.join(self.argv)])


def reserve() -> socket.socket:
    """Return a bound socket that never listens, so its port refuses connections until a server listens there.

    The system picks no bound port for another process. A server that sets SO_REUSEADDR or SO_REUSEPORT, as servers do,
    may bind it too, and listens while the socket here is open.
    """
    bound = socket.socket()
    for option in (socket.SO_REUSEADDR, socket.SO_REUSEPORT):
        bound.setsockopt(socket.SOL_SOCKET, option, 1)
    bound.bind(("127.0.0.1", 0))
    return bound


def port_of(bound: socket.socket) -> int:
    """Return the number of the port that a socket is bound to."""
    return int(bound.getsockname()[1])


def llama_cpp(home: Path) -> RealEngine:
    """Four slots of 1,024 tokens."""
    reserved = (reserve(),)
    port = port_of(reserved[0])
    url = f"http://127.0.0.1:{port}"
    where = ("-m", str(home / "tiny.gguf"), "-a", "tiny", "--host", "127.0.0.1", "--port", str(port))
    return RealEngine(
        name="llama.cpp",
        reserved=reserved,
        argv=(str(home / "llama-server"), *where, "-c", "4096", "-np", "4", "--metrics", "-t", "2", "--no-warmup"),
        url=url,
        model="tiny",
        metrics=f"{url}/metrics",
    )


def triton(home: Path) -> RealEngine:
    """The model `ensemble`: 8 requests at once, 64 blocks of 16 tokens."""
    reserved = [reserve() for _ in range(3)]
    http, grpc, metrics = map(port_of, reserved)
    url = f"http://127.0.0.1:{http}"
    addresses = [f"--{name}-address=127.0.0.1" for name in ("http", "grpc", "metrics")]
    ports = [f"--http-port={http}", f"--grpc-port={grpc}", f"--metrics-port={metrics}"]
    repository = f"--model-repository={home / 'models'}"
    return RealEngine(
        name="triton",
        reserved=reserved,
        argv=(str(home / "tritonserver"), repository, *addresses, *ports, "--metrics-interval-ms=500"),
        url=url,
        model="ensemble",
        ready="/v2/health/ready",
        stream="/v2/models/ensemble/generate_stream",
        body=b'{"text_input": "one two three", "max_tokens": 5, "stream": true}',
        metrics=f"http://127.0.0.1:{metrics}/metrics",
    )


def transformers(home: Path) -> RealEngine:
    """Continuous batching over 64 blocks of 32 tokens; no metrics page exists."""
    reserved = (reserve(),)
    port = port_of(reserved[0])
    url, model = f"http://127.0.0.1:{port}", str(home / "tiny-llama-w")
    where = ("--device", "cpu", "--host", "127.0.0.1", "--port", str(port))
    batching = (
        "--continuous-batching",
        "--cb-block-size",
        "32",
        "--cb-num-blocks",
        "64",
        "--cb-max-batch-tokens",
        "256",
    )
    return RealEngine(
        name="transformers",
        reserved=reserved,
        argv=(str(home / "bin" / "transformers"), "serve", model, *where, *batching),
        url=url,
        model=model,
        environment=OFFLINE,
        seconds=120.0,
    )


def ray_serve_llm(home: Path) -> RealEngine:
    """One replica of vLLM, 8 sequences at once, 64 blocks of 32 tokens."""
    reserved = [reserve() for _ in range(2)]
    http, metrics = map(port_of, reserved)
    url = f"http://127.0.0.1:{http}"
    app = Path(__file__).parents[2] / "engines/servetop/engines/adapters/servers/ray_app.py"
    where = ("--port", str(http), "--metrics-port", str(metrics), "--served-model-name", "tiny")
    # With 16 bits vLLM takes AMX on a processor that has it, and its worker dies under Ray (illegal instruction).
    here = ("--accelerator", "cpu", "--num-cpus", "4", "--dtype", "float32")
    sizes = ("--max-num-seqs", "8", "--max-model-len", "1024", "--engine-kwargs", RAY_ENGINE)
    return RealEngine(
        name="ray-serve-llm",
        reserved=reserved,
        argv=(str(home / "bin" / "python"), str(app), str(home / "tiny-llama"), *where, *here, *sizes),
        url=url,
        model="tiny",
        ready="/v1/models",
        metrics=f"http://127.0.0.1:{metrics}/metrics",
        environment=OFFLINE | {"RAY_DEDUP_LOGS": "0"},
        seconds=240.0,
    )


ENGINES: Mapping[str, Callable[[Path], RealEngine]] = {
    "llama.cpp": llama_cpp,
    "triton": triton,
    "transformers": transformers,
    "ray-serve-llm": ray_serve_llm,
}


def completion(model: str) -> bytes:
    """Five tokens by OpenAI's completions."""
    return f'{{"model": "{model}", "prompt": "the quick brown fox", "max_tokens": 5, "stream": true}}'.encode()


@contextlib.contextmanager
def started(engine: RealEngine, log: Path) -> Iterator[RealEngine]:
    """Serving, which one answer has proven; afterwards ended, and nothing of it may be left."""
    with log.open("wb") as output:
        environment = {**os.environ, **engine.environment}
        process = subprocess.Popen(
            engine.argv, stdout=output, stderr=subprocess.STDOUT, env=environment, start_new_session=True
        )
    try:
        wait_until_ready(engine, process, log)
        first_event(engine, log)  # Ray Serve says that it is ready while the model still loads
        yield engine
    finally:
        end(process, engine.name)
        for each in engine.reserved:
            each.close()


def wait_until_ready(engine: RealEngine, process: subprocess.Popen[bytes], log: Path) -> None:
    """Ask twenty times a second."""
    for _ in range(int(engine.seconds * 20)):
        if answers(engine.url + engine.ready):
            return
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.05)
            raise AssertionError(f"{engine.name} ended at its start: {engine.command}\n{tail(log)}")
    raise AssertionError(f"{engine.name} did not serve within {engine.seconds} s: {engine.command}\n{tail(log)}")


def answers(url: str) -> bool:
    with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=2) as response:
        return bool(response.status == 200)
    return False


def tail(log: Path) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-20:])


def end(process: subprocess.Popen[bytes], name: str) -> None:
    """SIGTERM and 30 s of patience, 5 s more for its children; then SIGKILL for all of its session.

    The session, because Ray's workers have process groups of their own.
    """
    process.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(30)
    late, pause = process.poll() is None, threading.Event()
    for _ in range(100):
        if late or not session(process.pid):
            break
        pause.wait(0.05)
    left = session(process.pid)
    for pid in left:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    process.wait()
    assert not late, f"{name} did not end within 30 s of SIGTERM"
    assert not left, f"{name} left processes behind: {left}"


def session(leader: int) -> list[int]:
    """The living processes of the session that `leader` began."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, _, of = path.read_text().rpartition(") ")[2].split()[:4]
            if int(of) == leader and state != "Z":
                found.append(int(path.parent.name))
    return found


def first_event(engine: RealEngine, log: Path) -> str:
    """Have it stream an answer of five tokens, fewer where it ends or a character takes several; the first event."""
    body = completion(engine.model) if engine.body is None else engine.body
    request = urllib.request.Request(engine.url + engine.stream, body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=engine.seconds) as response:
        stream: str = response.read().decode()
    events = [line for line in stream.splitlines() if line.startswith("data: {")]
    assert len(events) >= 2, f"{engine.name} did not stream: {stream}\n{tail(log)}"
    return events[0]


def prove(engine: RealEngine) -> str:
    """Start it, have it answer, end it; the first event of its answer."""
    with tempfile.TemporaryDirectory() as folder, started(engine, log := Path(folder) / "log"):
        return first_event(engine, log)


if __name__ == "__main__":
    sys.stderr.write(f"servetop: {sys.argv[1]} serves: {prove(ENGINES[sys.argv[1]](Path(sys.argv[2])))}\n")
