"""A policy is one choice of each small class; the named ones are those of the published systems."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass

from servetop.core.errors import UsageError
from servetop.simulator.policies.admission_policies import Always, Gate, WholeBatch
from servetop.simulator.policies.eviction import Eviction, Recompute, Swap
from servetop.simulator.policies.iteration import Chunked, Fused, Iteration, PrefillFirst
from servetop.simulator.policies.reservation import MemoryRule, OnDemand, Reserved


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The choices of one policy: admission, reservation, eviction and iteration."""

    name: str
    iteration: Iteration
    memory: MemoryRule
    gate: Gate
    eviction: Eviction
    offloaded: bool = False
    """Weights and KV live in host memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyParameters:
    """The parameters of policies, from an engine profile."""

    watermark: float
    decode_slack: int
    batch_timeout: float
    max_model_len: int


def _paged(name: str, p: PolicyParameters, *, iteration: Iteration, eviction: Eviction | None = None) -> Policy:
    spare = 1 if isinstance(eviction, Swap) else 0  # swapping in wants a block to go on with
    memory = OnDemand(watermark=p.watermark, slack=p.decode_slack, spare=spare)
    return Policy(name=name, iteration=iteration, memory=memory, gate=Always(), eviction=eviction or Recompute())


def _reserved(
    name: str,
    *,
    iteration: Iteration,
    gate: Gate | None = None,
    slot_tokens: int | None = None,
    offloaded: bool = False,
) -> Policy:
    return Policy(
        name=name,
        iteration=iteration,
        memory=Reserved(slot_tokens=slot_tokens),
        gate=gate or Always(),
        eviction=Recompute(),
        offloaded=offloaded,
    )


_POLICIES: dict[str, Callable[[str, PolicyParameters], Policy]] = {
    "recompute": lambda name, p: _paged(name, p, iteration=PrefillFirst()),
    "swap": lambda name, p: _paged(name, p, iteration=PrefillFirst(), eviction=Swap()),
    "reserve": lambda name, _: _reserved(name, iteration=PrefillFirst()),
    "inflight": lambda name, p: _paged(name, p, iteration=Fused()),
    "inflight-reserve": lambda name, _: _reserved(name, iteration=Fused()),
    "chunked": lambda name, p: _paged(name, p, iteration=Chunked()),
    "splitfuse": lambda name, _: _reserved(name, iteration=Chunked()),
    "orca": lambda name, p: _reserved(name, iteration=Fused(), slot_tokens=p.max_model_len),
    "dynamic": lambda name, p: _reserved(name, iteration=PrefillFirst(), gate=WholeBatch(timeout=p.batch_timeout)),
    "static": lambda name, _: _reserved(name, iteration=PrefillFirst(), gate=WholeBatch()),
    "no-batching": lambda name, _: _reserved(name, iteration=PrefillFirst(), gate=WholeBatch()),
    "offload": lambda name, _: _reserved(name, iteration=PrefillFirst(), gate=WholeBatch(), offloaded=True),
}


def policy_names() -> list[str]:
    """Return the names that `make_policy` accepts."""
    return list(_POLICIES)


def make_policy(name: str, parameters: PolicyParameters) -> Policy:
    """A policy by name: `recompute`, `swap` (vLLM); `reserve` (TGI); `inflight`, `inflight-reserve` (TensorRT-LLM);
    `chunked` (vLLM V1); `splitfuse` (FastGen); `orca`; `dynamic`, `static`, `no-batching`; `offload` (FlexGen).
    """
    if name not in _POLICIES:
        near = difflib.get_close_matches(name, _POLICIES, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(_POLICIES)}"
        raise UsageError(f"no policy {name!r}: {hint}")
    return _POLICIES[name](name, parameters)
