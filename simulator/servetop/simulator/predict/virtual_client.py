"""Clients in virtual time: send the stages of a run to a simulated engine, without a network or a clock."""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Iterable, Iterator, Sequence

from servetop.core.config import StageConfig, WorkloadConfig
from servetop.simulator.model.settings import SimSpec
from servetop.simulator.model.sim_request import SimRequest, SimSequence
from servetop.simulator.predict.client_requests import ClientRequest, ClientRequests
from servetop.simulator.predict.virtual_time import Client
from servetop.workload.arrivals.arrival_process import InProcessBursts
from servetop.workload.arrivals.arrival_spec import IN_PROCESS_BURST, parse_arrivals
from servetop.workload.build import arrivals_of
from servetop.workload.stages.stage_draws import DrawSeeds, StageDraws, Stream
from servetop.workload.stages.stage_run import StageRun
from servetop.workload.user_slots import UserSlots, parse_think_time

_RETRY_SECONDS = 1.0
"""Pause of a closed loop after a refused request, like the load generator's."""


class VirtualSender:
    """Creates the client of each stage of one run, which sends the same as in a real run."""

    def __init__(self, workload: WorkloadConfig, spec: SimSpec, *, seed: int, sweep: bool = True) -> None:
        self._workload = workload
        self._spec = spec
        self._seeds = DrawSeeds(workload, seed=seed, sweep=sweep)
        self._requests: ClientRequests | None = None
        self._stream: Stream | None = None
        self._arrivals = arrivals_of(workload)
        self._in_process = parse_arrivals(workload.arrivals).name == IN_PROCESS_BURST
        self._conversational = workload.conversational
        self._thinking = bool(workload.think_time) and not workload.conversational
        self._scale = spec.time_scale

    def client(self, stage: StageConfig) -> Client:
        """Return the client of the next cell; its times are multiplied by the engine's `time_scale`."""
        draws = self._seeds.next(stage)
        arrivals, requests = self._arrivals(draws), self._requests_of(draws)
        feedback = stage.max_concurrency is not None or self._conversational
        if self._in_process and not feedback and not math.isinf(stage.request_rate):
            process = arrivals(stage.request_rate)
            assert isinstance(process, InProcessBursts)
            return InProcessClient(stage, requests, bursts=process, scale=self._scale)
        run = StageRun(0, stage, started_at=0.0, arrivals=arrivals)
        pauses = (self._scale * pause for pause in self._pauses(draws))
        slots = UserSlots(pauses if self._thinking else None)
        return StageClient(run, requests, slots=slots, pauses=pauses, feedback=feedback, scale=self._scale)

    def _requests_of(self, draws: StageDraws) -> ClientRequests:
        """Return the requests of a stage, which may continue those of the stage before."""
        if self._requests is None or draws.stream != self._stream:
            self._stream, self._requests = draws.stream, ClientRequests(self._workload, self._spec, draws=draws)
        return self._requests

    def _pauses(self, draws: StageDraws) -> Iterator[float]:
        seed = (*draws.prompts, 0)  # as the first sender of a real run
        return parse_think_time(self._workload.think_time, seed=seed) or itertools.repeat(0.0)


class OpenLoop:
    """Sends requests at given times."""

    feedback = False

    def __init__(self, requests: Sequence[SimRequest], due_times: Iterable[float]) -> None:
        self._requests = iter(requests)
        self._times: Iterator[float] = iter(due_times)
        self._due = next(self._times, math.inf)

    def due(self) -> float:
        """Time of the next request."""
        return self._due

    def send(self, _boundary: float, /) -> tuple[float, Sequence[SimRequest]]:
        """Return one request and its due time."""
        at, self._due = self._due, next(self._times, math.inf)
        request = next(self._requests, None)
        if request is None:
            self._due = math.inf
        return at, () if request is None else (request,)

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
    """Sends a stage as the load generator does: arrivals, concurrency limit, pauses, conversations."""

    def __init__(
        self,
        run: StageRun,
        requests: ClientRequests,
        *,
        slots: UserSlots,
        pauses: Iterator[float],
        feedback: bool,
        scale: float,
    ) -> None:
        self.feedback = feedback
        self._run = run
        self._requests = requests
        self._slots = slots
        self._pauses = pauses
        self._scale = scale
        self._limit = math.inf if run.limit is None else run.limit
        self._in_flight = 0
        self._unfinished_copies: dict[ClientRequest, int] = {}
        self._turns: list[tuple[float, int, ClientRequest]] = []
        self._room_at = 0.0
        self._not_before = 0.0
        self._over = False
        self._due = self._next_due()

    def due(self) -> float:
        """Time of the next request; infinity while it depends on a completion."""
        return self._due

    def send(self, _boundary: float, /) -> tuple[float, Sequence[SimRequest]]:
        """Return the time of the next request and one copy of it per completion."""
        at, request = self._due, self._take(self._due)
        if request is None:
            self._due = self._next_due()
            return at, ()
        self._in_flight += 1
        if request.copies > 1:
            self._unfinished_copies[request] = request.copies
        self._due = self._next_due()
        return at, (request,) * request.copies

    def on_finished(self, finished: Sequence[SimSequence], now: float) -> None:
        """Free the slots of completed requests, and continue their conversations."""
        for seq in finished:
            request = seq.request
            if isinstance(request, ClientRequest) and self._is_complete(request):
                self._end(request, now, continues=not request.cancelled)
        self._due = self._next_due()

    def on_refused(self, request: SimRequest, at: float) -> None:
        """Free the slot; a closed loop sends the next request a second later."""
        if isinstance(request, ClientRequest) and self._is_complete(request):
            self._not_before = at + _RETRY_SECONDS * self._scale
            self._end(request, at, continues=False)
        self._due = self._next_due()

    def _is_complete(self, request: ClientRequest) -> bool:
        if request.copies == 1:
            return True
        self._unfinished_copies[request] -= 1
        return not self._unfinished_copies[request]

    def _end(self, request: ClientRequest, now: float, *, continues: bool) -> None:
        if self._in_flight >= self._limit:
            self._room_at = now
        self._in_flight -= 1
        turn = self._requests.next_turn(request) if continues else None
        if turn is None:
            self._slots.freed(now, closed=self._run.closed)
            return
        at = now + next(self._pauses)
        if self._run.exhausted or at < self._run.end() * self._scale:
            heapq.heappush(self._turns, (at, turn.number, turn))

    def _next_due(self) -> float:
        if self._in_flight >= self._limit:
            return math.inf
        new_request = self._slot_free_at() if self._run.closed else self._run.next_due() * self._scale
        new_request = new_request if new_request < self._run.end() * self._scale else math.inf
        next_turn = self._turns[0][0] if self._turns else math.inf
        return max(self._room_at, min(new_request, next_turn))

    def _slot_free_at(self) -> float:
        """Time at which a user of a closed loop can send; not before `_room_at`."""
        if self._over or self._run.exhausted:
            return math.inf
        if self._in_flight + len(self._turns) + self._slots.thinking < self._limit:
            return max(self._room_at, self._not_before)
        return self._slots.usable_at(0.0, not_before=self._not_before)

    def _take(self, at: float) -> ClientRequest | None:
        """Return the request to send at a time: the turn of a conversation that is due, or a new request."""
        if self._turns and self._turns[0][0] <= at:
            return heapq.heappop(self._turns)[2]
        if self._run.closed:
            occupied = self._in_flight + len(self._turns)
            since = self._slots.free_since(at, in_flight=occupied, limit=self._run.limit)
            if since is None or self._run.take_slot(at / self._scale) is None:
                self._over = True
                return None
        else:
            self._run.issue()
        return self._requests.take()
