"""A stand-in for TensorRT-LLM behind a real Triton: continuous batching over few KV blocks, and its metric names.

Runs inside Triton's Python backend. Each answer token is ` tok1`, ` tok2`, …, one step (10 ms) apart for all that run.
"""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import triton_python_backend_utils as backend

MAX_RUNNING, BLOCKS, TOKENS_PER_BLOCK, STEP = 8, 64, 16, 0.01

REQUESTS = ("waiting", "context", "scheduled", "max", "active")
KV_BLOCKS = ("used", "free", "max", "tokens_per", "fraction")
BATCHER = ("micro_batch_id", "generation_requests", "total_context_tokens", "paused_requests")


@dataclass
class Generation:
    """One request: `made` of `wanted` tokens are out; `prompt` counts its words."""

    sender: Any
    wanted: int
    prompt: int
    stream: bool
    made: list[str] = field(default_factory=list)

    @property
    def blocks(self) -> int:
        return -(-(self.prompt + len(self.made) + 1) // TOKENS_PER_BLOCK)

    def step(self) -> bool:
        """One more token; whether it was the last."""
        self.made.append(f" tok{len(self.made) + 1}")
        last = len(self.made) >= self.wanted
        if self.stream or last:
            text = self.made[-1] if self.stream else "".join(self.made)
            answer = backend.InferenceResponse([backend.Tensor("text_output", np.array([text], dtype=object))])
            self.sender.send(answer, flags=backend.TRITONSERVER_RESPONSE_COMPLETE_FINAL if last else 0)
        return last


class Gauges:
    """One family of TensorRT-LLM's metrics: a gauge for each value of its label."""

    def __init__(self, family: str, label: str, values: tuple[str, ...]) -> None:
        name, kind = f"nv_trt_llm_{family}_metrics", backend.MetricFamily.GAUGE
        self.family = backend.MetricFamily(name=name, description=f"TRT LLM {family} metrics", kind=kind)
        same = {"model": "tensorrt_llm", "version": "1"}
        self.gauges = {value: self.family.Metric(labels={**same, label: value}) for value in values}

    def set(self, **values: float) -> None:
        for name, value in values.items():
            self.gauges[name].set(value)


class TritonPythonModel:
    """What the Python backend calls."""

    def initialize(self, args: dict[str, str]) -> None:
        """Make the metrics and start stepping."""
        backend.Logger.log_info(f"servetop's stand-in model runs on NumPy {np.__version__} of {np.__file__}")
        self.requests = Gauges("request", "request_type", REQUESTS)
        self.kv_blocks = Gauges("kv_cache_block", "kv_cache_block_type", KV_BLOCKS)
        self.batcher = Gauges("inflight_batcher", "inflight_batcher_specific_metric", BATCHER)
        self.requests.set(max=MAX_RUNNING)
        self.kv_blocks.set(max=BLOCKS, tokens_per=TOKENS_PER_BLOCK)
        self.waiting: deque[Generation] = deque()
        self.running: list[Generation] = []
        self.arrived = threading.Condition()
        self.stopping = threading.Event()
        threading.Thread(target=self.step_until_stopped, daemon=True).start()

    def execute(self, requests: list[Any]) -> None:
        """Queue them; the answers come from `step_until_stopped`."""
        for request in requests:
            text = value_of(request, "text_input", b"")
            generation = Generation(
                sender=request.get_response_sender(),
                wanted=max(1, int(value_of(request, "max_tokens", 1))),
                prompt=len(text.decode().split()),
                stream=bool(value_of(request, "stream", False)),
            )
            with self.arrived:
                self.waiting.append(generation)
                self.arrived.notify()

    def step_until_stopped(self) -> None:
        """Admit, pause, compute for a step's time, send."""
        while not self.stopping.is_set():
            with self.arrived:
                if not self.waiting and not self.running:
                    self.show(paused=0)
                    self.arrived.wait(0.5)
                self.admit()
            self.show(paused=self.pause())
            self.stopping.wait(STEP)
            self.running = [generation for generation in self.running if not generation.step()]

    def admit(self) -> None:
        while self.waiting and len(self.running) < MAX_RUNNING and self.used + 2 < BLOCKS:
            self.running.append(self.waiting.popleft())

    def pause(self) -> int:
        """Send the latest back to the queue until the rest fits; how many."""
        paused = 0
        while self.used > BLOCKS and len(self.running) > 1:
            self.waiting.appendleft(self.running.pop())
            paused += 1
        return paused

    @property
    def used(self) -> int:
        return sum(generation.blocks for generation in self.running)

    def show(self, *, paused: int) -> None:
        running, waiting, used = len(self.running), len(self.waiting), self.used
        self.requests.set(waiting=waiting, active=waiting + running, scheduled=running)
        self.kv_blocks.set(used=used, free=BLOCKS - used, fraction=used / BLOCKS)
        self.batcher.set(generation_requests=running, paused_requests=paused)

    def finalize(self) -> None:
        """Triton ends."""
        self.stopping.set()


def value_of(request: Any, name: str, default: Any) -> Any:
    """An input's first value; inputs may be left out."""
    tensor = backend.get_input_tensor_by_name(request, name)
    return default if tensor is None else tensor.as_numpy().flatten()[0]
