"""Clients of a single cell, which a simulated engine asks for requests: the load generator's, and simpler ones."""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Iterable, Iterator, Sequence

from servetop.core.config import StageConfig, WorkloadConfig
from servetop.simulator.model.settings import SimSpec
from servetop.simulator.model.sim_request import SimRequest, SimSequence
from servetop.simulator.predict.client_requests import ClientRequest, ClientRequests, RequestStreams
from servetop.simulator.predict.virtual_client import VirtualClient
from servetop.simulator.predict.virtual_time import Client
from servetop.workload.arrivals.arrival_process import InProcessBursts
from servetop.workload.arrivals.arrival_spec import IN_PROCESS_BURST, parse_arrivals
from servetop.workload.build import arrivals_of
from servetop.workload.stages.plan import LoadPlan
from servetop.workload.stages.stage_draws import DrawSeeds
from servetop.workload.stages.stage_run import StageRun


class VirtualSender:
    """Creates the client of each stage of one run, which sends the same as in a real run."""

    def __init__(self, workload: WorkloadConfig, spec: SimSpec, *, seed: int, sweep: bool = True) -> None:
        self._seeds = DrawSeeds(workload, seed=seed, sweep=sweep)
        self._spec = spec
        self._scale = spec.time_scale
        self._use(workload)

    def _use(self, workload: WorkloadConfig) -> None:
        """Send the requests of a workload from now on."""
        self._workload = workload
        self._requests = RequestStreams(workload, self._spec)
        self._arrivals = arrivals_of(workload)
        self._in_process = parse_arrivals(workload.arrivals).name == IN_PROCESS_BURST

    def client(self, stage: StageConfig) -> Client:
        """Return the client of the next cell; its times are multiplied by the engine's `time_scale`."""
        draws = self._seeds.next(stage)
        if draws.workload is not None and draws.workload != self._workload:
            self._use(draws.workload)
        feedback = stage.max_concurrency is not None or self._workload.conversational
        if self._in_process and not feedback and not math.isinf(stage.request_rate):
            process = self._arrivals(draws)(stage.request_rate)
            assert isinstance(process, InProcessBursts)
            return InProcessClient(stage, self._requests.of(draws), bursts=process, scale=self._scale)
        if not feedback:
            run = StageRun(0, stage, started_at=0.0, arrivals=self._arrivals(draws))
            return OpenLoop(iter(self._requests.of(draws).take, None), (self._scale * at for at in _due_times(run)))
        plan = LoadPlan(segments=((0, stage),), draws={0: draws}, begin=0.0, drain_timeout=math.inf)
        client = VirtualClient(plan, self._workload, arrivals=self._arrivals, requests=self._requests.of)
        return StageClient(client, scale=self._scale)


def _due_times(run: StageRun) -> Iterator[float]:
    while run.next_due() < run.end():
        yield run.issue().at


class OpenLoop:
    """Sends requests at given times: a stage without a limit or conversations, in which no response matters."""

    feedback = False

    def __init__(self, requests: Iterable[SimRequest], due_times: Iterable[float]) -> None:
        self._requests: Iterator[SimRequest] = iter(requests)
        self._times: Iterator[float] = iter(due_times)
        self._due = next(self._times, math.inf)

    def due(self) -> float:
        """Time of the next request."""
        return self._due

    def send(self, _boundary: float, /) -> tuple[float, Sequence[SimRequest]]:
        """Return one request, with a copy of it per completion, and its due time."""
        at, self._due = self._due, next(self._times, math.inf)
        request = next(self._requests, None)
        if request is None:
            self._due = math.inf
            return at, ()
        return at, (request,) * (request.copies if isinstance(request, ClientRequest) else 1)

    def on_finished(self, finished: Sequence[SimSequence], now: float) -> None:
        """Ignore completions."""

    def on_refused(self, request: SimRequest, at: float) -> None:
        """Ignore refused requests."""


class InProcessClient:
    """Sends whole bursts from the engine's own event loop, so an iteration delays the burst and the next timer."""

    feedback = False

    def __init__(self, stage: StageConfig, requests: ClientRequests, *, bursts: InProcessBursts, scale: float) -> None:
        self._requests = requests
        self._size = bursts.size
        self._period = bursts.period * scale
        self._left = math.inf if stage.num_prompts is None else stage.num_prompts
        self._ends = math.inf if stage.duration is None else stage.duration * scale
        self._due = 0.0 if self._left >= self._size else math.inf

    def due(self) -> float:
        """Time at which the timer expires."""
        return self._due

    def send(self, boundary: float, /) -> tuple[float, Sequence[SimRequest]]:
        """Return one burst, sent at the boundary."""
        burst = [self._requests.take() for _ in range(self._size)]
        self._left -= self._size
        due = boundary + self._period
        if self._left >= self._size and due < self._ends:
            self._due = due
        else:
            self._due = math.inf
        return boundary, [request for request in burst for _ in range(request.copies)]

    def on_finished(self, finished: Sequence[SimSequence], now: float) -> None:
        """Ignore completions."""

    def on_refused(self, request: SimRequest, at: float) -> None:
        """Ignore refused requests."""


class StageClient:
    """Sends a stage as the load generator does; the server's times are those of the client multiplied by `scale`."""

    feedback = True

    def __init__(self, client: VirtualClient, *, scale: float) -> None:
        self._client = client
        self._scale = scale
        self._unfinished_copies: dict[ClientRequest, int] = {}
        self._leaving: list[tuple[float, int, ClientRequest]] = []
        self._order = itertools.count()
        self._find_due()

    def due(self) -> float:
        """Time of the next request; infinity while it depends on a completion."""
        return self._due

    def send(self, _boundary: float, /) -> tuple[float, Sequence[SimRequest]]:
        """Return the time of the next request and one copy of it per completion."""
        at = self._due
        if not self._leaving:
            self._advance(self._client.wake_at)
        if not self._leaving:
            return at, ()
        at, _, request = heapq.heappop(self._leaving)
        if request.copies > 1:
            self._unfinished_copies[request] = request.copies
        self._find_due()
        return at, (request,) * request.copies

    def on_finished(self, finished: Sequence[SimSequence], now: float) -> None:
        """Free the slots of completed requests, and continue their conversations."""
        self._catch_up(now)
        for seq in finished:
            request = seq.request
            if isinstance(request, ClientRequest) and self._is_complete(request):
                self._client.ended(request, now / self._scale, ok=not request.cancelled)
        self._advance(now / self._scale)

    def on_refused(self, request: SimRequest, at: float) -> None:
        """Free the slot; a closed loop pauses after failures."""
        if isinstance(request, ClientRequest) and self._is_complete(request):
            self._client.ended(request, at / self._scale, ok=False, failed=True)
            self._advance(at / self._scale)

    def _is_complete(self, request: ClientRequest) -> bool:
        if request.copies == 1:
            return True
        self._unfinished_copies[request] -= 1
        return not self._unfinished_copies[request]

    def _catch_up(self, now: float) -> None:
        """Send what was due before requests end at `now`, at which the engine has arrived in one step."""
        while self._client.wake_at * self._scale < now:
            self._advance(self._client.wake_at)

    def _advance(self, at: float) -> None:
        for sending in self._client.advance(at):
            heapq.heappush(self._leaving, (sending.at * self._scale, next(self._order), sending.request))
        self._find_due()

    def _find_due(self) -> None:
        self._due = self._leaving[0][0] if self._leaving else self._client.wake_at * self._scale
