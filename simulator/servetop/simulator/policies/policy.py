"""Scheduling policies of published systems, composed of admission, reservation, preemption and iteration policies."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass

from servetop.core.errors import UsageError
from servetop.simulator.policies.admission_policies import AdmissionPolicy, ContinuousBatching, RequestLevelBatching
from servetop.simulator.policies.iteration import ChunkedPrefill, FusedPrefill, IterationPlanner, PrefillFirst
from servetop.simulator.policies.preemption import PreemptionMode, Recompute, Swap
from servetop.simulator.policies.reservation import OnDemand, ReservationPolicy, Reserved


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyParameters:
    """The policy parameters of an engine profile."""

    watermark: float
    decode_slack: int
    batch_timeout: float
    max_model_len: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """One scheduling policy, composed of its parts."""

    name: str
    iteration: IterationPlanner
    reservation: ReservationPolicy
    admission: AdmissionPolicy
    preemption: PreemptionMode
    offloaded: bool = False
    """Weights and KV cache are in host memory."""


def _paged(
    name: str, p: PolicyParameters, *, iteration: IterationPlanner, preemption: PreemptionMode | None = None
) -> Policy:
    spare = 1 if isinstance(preemption, Swap) else 0  # a sequence that is swapped in needs a block to continue
    reservation = OnDemand(watermark=p.watermark, slack=p.decode_slack, spare=spare)
    return Policy(
        name=name,
        iteration=iteration,
        reservation=reservation,
        admission=ContinuousBatching(),
        preemption=preemption or Recompute(),
    )


def _reserved(
    name: str,
    *,
    iteration: IterationPlanner,
    admission: AdmissionPolicy | None = None,
    slot_tokens: int | None = None,
    offloaded: bool = False,
) -> Policy:
    return Policy(
        name=name,
        iteration=iteration,
        reservation=Reserved(slot_tokens=slot_tokens),
        admission=admission or ContinuousBatching(),
        preemption=Recompute(),
        offloaded=offloaded,
    )


_POLICIES: dict[str, Callable[[str, PolicyParameters], Policy]] = {
    "recompute": lambda name, p: _paged(name, p, iteration=PrefillFirst()),
    "swap": lambda name, p: _paged(name, p, iteration=PrefillFirst(), preemption=Swap()),
    "reserve": lambda name, _: _reserved(name, iteration=PrefillFirst()),
    "inflight": lambda name, p: _paged(name, p, iteration=FusedPrefill()),
    "inflight-reserve": lambda name, _: _reserved(name, iteration=FusedPrefill()),
    "chunked": lambda name, p: _paged(name, p, iteration=ChunkedPrefill()),
    "splitfuse": lambda name, _: _reserved(name, iteration=ChunkedPrefill()),
    "orca": lambda name, p: _reserved(name, iteration=FusedPrefill(), slot_tokens=p.max_model_len),
    "dynamic": lambda name, p: _reserved(
        name, iteration=PrefillFirst(), admission=RequestLevelBatching(timeout=p.batch_timeout)
    ),
    "static": lambda name, _: _reserved(name, iteration=PrefillFirst(), admission=RequestLevelBatching()),
    "no-batching": lambda name, _: _reserved(name, iteration=PrefillFirst(), admission=RequestLevelBatching()),
    "offload": lambda name, _: _reserved(
        name, iteration=PrefillFirst(), admission=RequestLevelBatching(), offloaded=True
    ),
}


def make_policy(name: str, parameters: PolicyParameters) -> Policy:
    """Return the policy of this name; UsageError if there is none.

    `recompute`, `swap` (vLLM); `reserve` (TGI); `inflight`, `inflight-reserve` (TensorRT-LLM); `chunked` (vLLM V1);
    `splitfuse` (FastGen); `orca`; `dynamic`, `static`, `no-batching`; `offload` (FlexGen).
    """
    if name not in _POLICIES:
        close = difflib.get_close_matches(name, _POLICIES, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"known are {', '.join(_POLICIES)}"
        raise UsageError(f"no policy {name!r}: {hint}")
    return _POLICIES[name](name, parameters)
