"""The commands that the steering keys request, derived from the state of the load."""

from __future__ import annotations

import bisect
import math
from collections.abc import Mapping
from dataclasses import dataclass

from servetop.core.events import Action
from servetop.core.interfaces.run_source import EngineFacts
from servetop.core.text import formats
from servetop.core.tick import LoadGauges
from servetop.core.units import MAX_REQUEST_RATE

NO_LOAD = "a watch sends no load: there is nothing to steer"
NOTHING_TO_STEER = "nothing to steer: the run has ended"
READ_ONLY = "this page is read-only: start it with --web-steer to allow changes"
_LOWEST_RATE = 0.01
_BATCH_SIZES = (1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 160, 192, 224, 256, 320, 384, 512, 768, 1024, 1536, 2048)
"""Steps of the batch-size key; they include the sizes of the published studies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One answer to a question: its key, its label, and the result it stands for."""

    key: str
    label: str
    hint: str = ""
    result: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question with a fixed set of answers."""

    text: str
    choices: tuple[Choice, ...]
    when_repeated: str | None = None
    """The result if the key that led to the question is pressed again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandRequest:
    """A command to send, with a question to ask first if it is expensive."""

    action: Action
    value: float | None = None
    question: str = ""


@dataclass(frozen=True, slots=True)
class Rejected:
    """The reason why a key has no effect now, for the user."""

    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandTarget:
    """The state of the load, including the effect of commands that are pending."""

    gauges: LoadGauges
    requested: Mapping[Action, float]
    """Values that were requested and not yet confirmed: repeated keys build on them."""
    engine: EngineFacts | None
    max_num_seqs: int | None
    """The batch size in force, if it is known."""
    boot_seconds: float | None
    done_rate: float = 0.0
    """Requests/s that completed during the last ten seconds."""

    @property
    def rate(self) -> float | None:
        """The target rate, requests/s."""
        return self.requested.get(Action.SET_RATE, self.gauges.request_rate)

    @property
    def concurrency(self) -> int | None:
        """The target for the limit of requests in flight; None means no limit."""
        requested = self.requested.get(Action.SET_CONCURRENCY)
        return self.gauges.max_concurrency if requested is None else round(requested)


def scaled_rate(target: CommandTarget, factor: float) -> CommandRequest | Rejected:
    """Multiplies the request rate."""
    if target.rate is None:
        return Rejected("no load to steer yet: it starts when the engine is ready")
    if math.isinf(target.rate):
        return Rejected("requests are sent as fast as the concurrency limit allows: steer that with [ and ]")
    rate = min(max(target.rate * factor, _LOWEST_RATE), MAX_REQUEST_RATE)
    return CommandRequest(action=Action.SET_RATE, value=float(f"{rate:.4g}"))


def stepped_concurrency(target: CommandTarget, direction: int) -> CommandRequest | Rejected:
    """Changes the concurrency limit by 10 %, at least 1; without one, lowering starts from the requests in flight."""
    limit = target.concurrency
    if limit is None and direction > 0:
        return Rejected("no concurrency limit to raise: [ sets one")
    base = max(target.gauges.in_flight, 1) if limit is None else limit
    return CommandRequest(action=Action.SET_CONCURRENCY, value=max(1, base + direction * max(1, round(base * 0.1))))


def stepped_batch_size(target: CommandTarget, direction: int) -> CommandRequest | Rejected:
    """Changes the engine's batch size by one step; asks first if that restarts the engine."""
    engine = target.engine
    if engine is None:
        return Rejected("the engine is not ready yet")
    if not engine.changes_batch_size_live and not engine.managed:
        return Rejected(
            f"servetop did not start this {engine.title} and cannot change its batch size; [ and ] steer concurrency"
        )
    current = target.requested.get(Action.SET_MAX_NUM_SEQS, target.max_num_seqs)
    if current is None:
        return Rejected(
            f"{engine.title} does not report its batch size: start it with --max-num-seqs N, then b changes it"
        )
    value = _next_batch_size(round(current), direction)
    return CommandRequest(
        action=Action.SET_MAX_NUM_SEQS, value=value, question=_restart_question(target, engine, value)
    )


def _next_batch_size(current: int, direction: int) -> int:
    if direction > 0:
        above = bisect.bisect_right(_BATCH_SIZES, current)
        return _BATCH_SIZES[above] if above < len(_BATCH_SIZES) else current * 2
    below = bisect.bisect_left(_BATCH_SIZES, current) - 1
    return _BATCH_SIZES[max(below, 0)]


def _restart_question(target: CommandTarget, engine: EngineFacts, value: int) -> str:
    if engine.changes_batch_size_live:
        return ""
    took = "" if target.boot_seconds is None else f" (about {formats.seconds(target.boot_seconds)})"
    return f"Batch size {value} restarts {engine.title}{took}. Requests in flight are drained first."


def burst(target: CommandTarget) -> CommandRequest | Rejected:
    """Requests about one second's worth of requests at once."""
    if target.rate is None:
        return Rejected("no load to burst yet: it starts when the engine is ready")
    size = target.gauges.in_flight if math.isinf(target.rate) else math.ceil(target.rate)
    return CommandRequest(action=Action.BURST, value=float(max(1, size)))


def switched_loop(target: CommandTarget) -> CommandRequest | Rejected:
    """Closes the loop at the concurrency limit, else at the requests in flight; opens it at the completion rate."""
    if target.rate is None:
        return Rejected("no load to switch yet: it starts when the engine is ready")
    if not math.isinf(target.rate):
        limit = target.concurrency or max(target.gauges.in_flight, 1)
        return CommandRequest(action=Action.CLOSE_LOOP, value=float(limit))
    if not target.done_rate:
        return Rejected("no request completed in the last ten seconds: no rate to open the loop at")
    return CommandRequest(action=Action.OPEN_LOOP, value=float(f"{min(target.done_rate, MAX_REQUEST_RATE):.4g}"))


def described(action: Action, value: float | None, text: str = "") -> str:
    """Return the text of a command, such as `rate 67.2 req/s`."""
    shown = formats.number(value) if action is Action.SET_RATE else formats.count(value)
    texts = {
        Action.SET_RATE: f"rate {shown} req/s",
        Action.SET_CONCURRENCY: f"concurrency {shown}",
        Action.SET_MAX_NUM_SEQS: f"batch size {shown}",
        Action.HOLD_STAGE: "hold this stage",
        Action.CONTINUE_STAGES: "continue the ramp",
        Action.PAUSE_LOAD: "pause the load",
        Action.RESUME_LOAD: "resume the load",
        Action.NEXT_STAGE: "next stage",
        Action.PREVIOUS_STAGE: "previous stage",
        Action.OPEN_LOOP: f"open loop at {formats.number(value)} req/s",
        Action.CLOSE_LOOP: f"closed loop of {shown}",
        Action.BURST: f"burst of {shown}",
        Action.SEARCH: "search, or take the load back",
        Action.MARK: f"mark {text}".strip(),
        Action.STOP: "drain and stop",
        Action.CANCEL: "cancel and stop",
    }
    return texts[action]


QUIT_WATCH = Question(
    text="The watch is still active. What should happen to it?",
    choices=(
        Choice(key="s", label="stop and quit", result="stop", hint="end the watch"),
        Choice(key="l", label="leave it running", result="detach", hint="close the dashboard only"),
    ),
    when_repeated="stop",
)
QUIT_RUN = Question(
    text="The run is still active. What should happen to it?",
    choices=(
        Choice(key="d", label="drain and quit", result="stop", hint="send nothing more, let requests finish"),
        Choice(key="c", label="cancel and quit", result="cancel", hint="cancel the requests in flight"),
        Choice(key="l", label="leave it running", result="detach", hint="close the dashboard only"),
    ),
    when_repeated="cancel",
)
"""What may become of a run, or of a watch, whose dashboard is closed."""
