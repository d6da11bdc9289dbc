"""The engines of a virtual run behind a router: one, or several replicas, not all of which need to answer."""

from __future__ import annotations

import dataclasses
import itertools
import math
import random
from collections.abc import Iterator

from servetop.core.clock import ManualClock
from servetop.core.events import EngineSample, GpuSample, ReplicaSample
from servetop.core.interfaces.run_source import EngineFacts
from servetop.simulator.model.sim_request import SimSequence
from servetop.simulator.predict.client_requests import ClientRequests
from servetop.simulator.scheduling.build import build_scheduler
from servetop.simulator.virtual_run.admission_log import AdmissionState
from servetop.simulator.virtual_run.metered_engine import MeteredEngine, TokenListener
from servetop.simulator.virtual_run.sent_request import SentRequest
from servetop.simulator.virtual_run.virtual_gpu import VirtualGpu
from servetop.simulator.virtual_run.virtual_run_plan import VirtualRunPlan
from servetop.workload.stages.stage_draws import DrawSeeds

_FIELDS = tuple(each.name for each in dataclasses.fields(EngineSample))


class ReplicaSet:
    """The engines of a plan, with equal settings unless it lists others, and the router between them."""

    def __init__(self, plan: VirtualRunPlan, listener: TokenListener, *, clock: ManualClock) -> None:
        self._plan = plan
        self._clock = clock
        self._engines = [
            MeteredEngine(
                plan.spec_of(each),
                listener,
                clock=clock,
                at_boundaries=plan.at_boundaries,
                leak=plan.leak,
                pauses=plan.pauses,
            )
            for each in range(plan.replicas)
        ]
        self._answering = [each for number, each in enumerate(self._engines) if number not in plan.missing]
        self._turns = itertools.cycle(self._answering)
        self._random = random.Random(plan.config.seed)
        self._gpus = () if plan.gpus is None else tuple(self._devices())
        self._throttle_at = math.inf if plan.gpus is None else plan.gpus.throttle_from
        self._warm()

    @property
    def admissions(self) -> tuple[tuple[AdmissionState, ...], ...]:
        """The queue of each engine after each of its scheduling decisions."""
        return tuple(tuple(each.admissions) for each in self._engines)

    @property
    def max_num_seqs(self) -> int:
        """The batch-size limit of each engine."""
        return self._engines[0].scheduler.limits.max_num_seqs

    @property
    def facts(self) -> EngineFacts:
        """What a client knows about the engines."""
        scheduler, model = self._engines[0].scheduler, self._plan.config.engine.model
        count = self._plan.replicas
        return EngineFacts(
            name="sim",
            title="servetop simulator",
            version=self._plan.engine_profile,
            model=model,
            models=(model,),
            kv_blocks_total=sum(each.scheduler.blocks.total for each in self._engines),
            block_size=scheduler.blocks.block_size,
            max_num_seqs=self._plan.spec.batch_limit,
            max_model_len=scheduler.limits.max_model_len,
            replica_urls=tuple(f"http://sim-{number}" for number in range(count)) if count > 1 else (),
            changes_batch_size_live=True,
        )

    @property
    def wake_at(self) -> float:
        """Time of the next call of `wake`; infinity if all engines are idle."""
        return min(self._throttle_at, *(each.wake_at for each in self._answering))

    def wake(self) -> None:
        """Change the clocks, run the iteration that ends now, or begin a fault of an engine."""
        if self._throttle_at <= self._clock.now():
            self._throttle()
        else:
            min(self._answering, key=lambda each: each.wake_at).wake()

    def submit(self, request: SentRequest) -> SimSequence | None:
        """Send a request to an engine; None if that engine can never serve it."""
        engine = self._choose()
        if self._plan.replicas > 1:
            request.replica = self._engines.index(engine)
        return engine.submit(request)

    def _choose(self) -> MeteredEngine:
        match self._plan.router:
            case "random":
                return self._random.choice(self._answering)
            case "least-loaded":
                return min(self._answering, key=lambda each: each.scheduler.unfinished)
            case _:
                return next(self._turns)

    def refusal(self, request: SentRequest) -> str:
        """Return the error with which an engine that can never serve a request responds."""
        scheduler = self._engines[0].scheduler
        tokens = request.request.prompt_tokens + request.request.limit
        if tokens > (context := scheduler.limits.max_model_len):
            return f"HTTP 400: this model's maximum context length is {context} tokens, the request has {tokens}"
        cached = scheduler.blocks.total * scheduler.blocks.block_size
        return f"HTTP 400: this engine's KV cache holds {cached} tokens, the request has {tokens}"

    def drop(self, request: SentRequest, seq: SimSequence) -> None:
        """Drop a sequence whose client has disconnected."""
        self._engines[request.replica or 0].drop(seq)

    def set_max_num_seqs(self, limit: int) -> None:
        """Change the batch-size limit of all engines."""
        for each in self._engines:
            each.set_max_num_seqs(limit)

    def stop(self) -> None:
        """Stop computing for good."""
        self._throttle_at = math.inf
        for each in self._engines:
            each.stop()

    def replica_samples(self) -> tuple[ReplicaSample, ...]:
        """Return a scrape of each replica that answers; none for a single engine."""
        if self._plan.replicas == 1:
            return ()
        samples = ((number, each.sample()) for number, each in enumerate(self._engines) if each in self._answering)
        return tuple(
            ReplicaSample(replica=number, **{name: getattr(sample, name) for name in _FIELDS})
            for number, sample in samples
        )

    def sample(self) -> EngineSample:
        """Return what a scrape of all metrics pages yields now: sums, and the mean of the KV usage."""
        samples = [each.sample() for each in self._answering]
        if len(samples) == 1:
            return samples[0]
        known = [name for name in _FIELDS if getattr(samples[0], name) is not None]
        sums = {name: sum(getattr(sample, name) for sample in samples) for name in known}
        times = {name: getattr(samples[0], name) for name in ("scrape_start", "scrape_end")}
        return EngineSample(**{**sums, **times, "kv_usage": sums["kv_usage"] / len(samples)})

    def gpu_samples(self) -> tuple[GpuSample, ...]:
        """Return a reading of each device; none if the plan has no telemetry."""
        pairs = zip(self._gpus, self._engines, strict=False)
        return tuple(gpu.sample(self._clock.now(), busy_seconds=each.busy_seconds) for gpu, each in pairs)

    def _devices(self) -> Iterator[VirtualGpu]:
        plan = self._plan
        assert plan.gpus is not None
        for index in range(plan.replicas):
            yield VirtualGpu(plan.gpus, name=plan.gpu, index=index, seed=plan.config.seed)

    def _throttle(self) -> None:
        assert self._plan.gpus is not None
        share = self._plan.gpus.clock_share(self._clock.now())
        self._throttle_at = math.inf
        for number, each in enumerate(self._engines):
            spec = self._plan.spec_of(number)
            slower = dataclasses.replace(spec, gpu=dataclasses.replace(spec.gpu, flops=share * spec.gpu.flops))
            each.set_cost(build_scheduler(slower).cost)

    def _warm(self) -> None:
        """Fill the prefix caches with the prompts of the plan's first requests."""
        plan = self._plan
        if not plan.cached_requests:
            return
        draws = DrawSeeds.of(plan.config).next(plan.config.stages[0])
        requests = ClientRequests(plan.config.workload, plan.spec, draws=draws, whole_prompts=plan.whole_prompts)
        for _ in range(plan.cached_requests):
            prefix = requests.take().prefix
            for each in self._answering:
                if each.scheduler.prefix is not None:
                    each.scheduler.prefix.restore(prefix)
