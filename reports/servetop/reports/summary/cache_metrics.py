"""The ideal hit rate of the prefix cache over the requests that a run sent."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from servetop.analysis.columns.latencies import times_to_first_token
from servetop.analysis.columns.request_columns import StageRequests
from servetop.analysis.columns.run_columns import Period, RunColumns
from servetop.analysis.prefix_cache.cache_notes import cache_methods, noted_rates
from servetop.analysis.prefix_cache.ideal_hits import (
    HitCount,
    cold_stages,
    hits_of_conversations,
    hits_of_prefixes,
    own_draws,
)
from servetop.analysis.prefix_cache.ttft_by_position import PrefixUses
from servetop.analysis.summary.engine_metrics import hits_in_period
from servetop.analysis.trust.cache_check import CacheCheck
from servetop.core.arrays import FloatArray, IntArray
from servetop.core.config import AS_IS, RANDOM, WARM, WorkloadConfig
from servetop.core.config_values.cell_settings import settings_of
from servetop.core.config_values.cell_workload import cell_workload
from servetop.core.events import Note
from servetop.recordings.read.load_requests import Selection
from servetop.recordings.read.reader import RecordingReader

_USUAL_BLOCK = 16
"""Tokens of a KV block where the engine does not report it."""
_TEMPLATE_TOKENS = 64
"""Tokens that chat templates add to prompts, which all of them share."""
_TURNS = ("conversation", "turn", "prompt_tokens", "output_tokens")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class IdealCache:
    """What an infinite cache finds that starts in the state that the run promises."""

    reader: RecordingReader
    workload: WorkloadConfig
    promised: str
    block_size: int
    servers: int
    warm_at: float
    """End of the warm-up."""
    noted: Mapping[int | None, float]
    """Rates of the prompts of a dataset, computed when the run ended, by stage; None for the run."""
    first_uses: Mapping[int, IntArray] = field(default_factory=dict)
    """Ids of the requests that were the first to use a prefix since the cache was empty, by stage, except warm-ups."""
    cells: Mapping[int, WorkloadConfig] = field(default_factory=dict)
    """Workloads by stage, if cells of a sweep have their own."""

    @classmethod
    def load(cls, reader: RecordingReader, run: RunColumns) -> IdealCache:
        """Read which prefixes each stage used, if several are shared and some are computed during the load."""
        config, facts = run.header.config, run.header.engine
        prefixes = _prefixes(config.workload)
        endpoint = config.workload.endpoint or (facts.endpoints[0] if facts and facts.endpoints else "completions")
        workload = replace(config.workload, endpoint=endpoint)
        cells = {
            stage.change.index: cell_workload(workload, settings)
            for stage in run.every_stage
            if (settings := settings_of(stage.change.settings))
        }
        uses: Mapping[int, IntArray] = {}
        if prefixes is not None and config.prefix_cache != WARM and not cells:
            uses = _first_uses(reader, run, count=prefixes[1])
        return cls(
            reader=reader,
            workload=workload,
            promised=config.prefix_cache,
            block_size=(facts and facts.prefix_block) or _USUAL_BLOCK,
            servers=max(1, len(facts.replica_urls)) if facts else 1,
            warm_at=run.warm_at,
            noted=noted_rates(reader.notes()),
            first_uses=uses,
            cells=cells,
        )

    def check(self, counted: HitCount | None, prompts: FloatArray, selection: Selection) -> CacheCheck:
        """Compare the tokens that the engine counted over a selection, None if unknown, with the ideal ones.

        `prompts` are those of `computed_prompts` of the same requests.
        """
        ideal = self._hits(prompts, selection)
        rate = None if counted is None or not counted.looked_up else counted.rate
        if rate is None and ideal is not None:
            rate = self.rate_of_responses(selection)
        if rate is None and counted is not None and self.promised == WARM:
            rate = 0.0  # the engine has no prefix cache
        return CacheCheck(
            hit_rate=math.nan if rate is None else rate,
            at_least=self._rate_by_position(selection) if rate is None and counted is None else math.nan,
            ideal=math.nan if ideal is None else ideal.rate,
            promised=self.promised,
            slack=0.0 if ideal is None else self._slack(ideal, counted, prompts.size, selection),
        )

    def check_run(self, run: RunColumns, requests: StageRequests) -> CacheCheck:
        """Compare the rate of the whole run, without warm-ups and stages that do not count, with the ideal one."""
        counted = [each.change.index for each in run.stages if not each.change.warmup]
        rows, columns = np.isin(requests.stages, counted), requests.columns
        prompts = computed_prompts(columns.prompt_tokens[rows], columns.first_token_at[rows])
        selection = Selection(start=None if run.warm_at == -math.inf else run.warm_at)
        return self.check(hits_in_period(run, Period(start=run.warm_at)), prompts, selection)

    def _rate_by_position(self, selection: Selection) -> float:
        """Return the lower bound from the times to first token; NaN if the prefixes or too few first uses are known."""
        if not self.first_uses:
            return math.nan
        firsts = np.concatenate([*self.first_uses.values()])
        where, parameters = selection.where
        condition = f"first_token_at IS NOT NULL{f' AND {where}' if where else ''}"
        rows = self.reader.request_rows(("id", "sent", "first_token_at"), where=condition, parameters=parameters)
        found = np.fromiter(rows, dtype=[("id", "i8"), ("sent", "f8"), ("first", "f8")])
        ttft = times_to_first_token(found["sent"], found["first"])
        uses = PrefixUses(sent=found["sent"], ttft=ttft, first=np.isin(found["id"], firsts))
        return uses.hit_rate_at_least()

    def _slack(self, ideal: HitCount, counted: HitCount | None, count: int, selection: Selection) -> float:
        """Return the part of the prompts that may be found or not.

        Besides the ends of texts these are first uses that may lie outside of a window or before the first scrape, and
        those of further servers.
        """
        certain, uncertain = self._first_uses_in(selection)
        missed = counted is not None and counted.looked_up < ideal.looked_up
        uses = uncertain + (self.servers - 1 + missed) * (certain + uncertain)
        shared = ideal.found / max(1, count - certain)
        return (self._uncertain_tokens * count + min(uses, count) * shared) / ideal.looked_up

    def rate_of_responses(self, selection: Selection) -> float | None:
        """Return the part of the prompt tokens that the responses report as cached; None if they report nothing."""
        where, parameters = selection.where
        condition = f"cached_tokens IS NOT NULL{f' AND {where}' if where else ''}"
        rows = self.reader.request_rows(("cached_tokens", "prompt_tokens"), where=condition, parameters=parameters)
        counts = np.fromiter(rows, dtype=[("cached", "f8"), ("prompt", "f8")])
        prompts = float(counts["prompt"].sum())
        return float(counts["cached"].sum()) / prompts if prompts > 0 else None

    @property
    def _uncertain_tokens(self) -> int:
        """Tokens of a prompt that may be found or not: none in blocks of token ids.

        Where texts share a prefix it may end within a block; otherwise they share only what a template adds.
        """
        workload = self.workload
        in_ids = workload.endpoint == "completions" and workload.dataset in RANDOM and not workload.conversational
        if in_ids and self.block_size > 1:
            return 0
        unlike = in_ids or (_prefixes(workload) is None and workload.dataset in RANDOM and not workload.conversational)
        return (_TEMPLATE_TOKENS if workload.in_messages else 2) + (0 if unlike else self.block_size)

    def _hits(self, prompts: FloatArray, selection: Selection) -> HitCount | None:
        """Return the hits of the requests of a selection; None for a workload whose prompts are not known."""
        workload = self.workload if not self.cells else self.cells.get(selection.stage or 0)
        if workload is None or workload.n > 1 or workload.model_mix or not prompts.size:
            return None
        prefixes = _prefixes(workload)
        if self.cells and (selection.stage is None or (prefixes is not None and self.promised != WARM)):
            return None
        if workload.conversational:
            return self._hits_of_turns(selection, prefix_tokens=prefixes[0] if prefixes else 0)
        if workload.dataset not in RANDOM:
            rate = self.noted.get(selection.stage)
            return None if rate is None else HitCount(rate * float(prompts.sum()), float(prompts.sum()))
        firsts, _ = self._first_uses_in(selection)
        if workload.cache_hit_rate is not None:
            total = float(prompts.sum())
            return HitCount(workload.cache_hit_rate * max(0.0, total - firsts * total / prompts.size), total)
        length = prefixes[0] if prefixes else 0
        return hits_of_prefixes(prompts, prefix_tokens=length, first_uses=firsts, block_size=self.block_size)

    def _first_uses_in(self, selection: Selection) -> tuple[int, int]:
        """First uses of prefixes that are in a selection, and those that may be: of a part of a stage or run."""
        stage = selection.stage
        uses = sum(each.size for number, each in self.first_uses.items() if stage in (None, number))
        begins = selection.start is None or selection.start <= self.warm_at
        return (uses, 0) if begins and selection.until is None else (0, uses)

    def _hits_of_turns(self, selection: Selection, *, prefix_tokens: int) -> HitCount | None:
        where, parameters = selection.where
        condition = f"turn > 0 AND first_token_at IS NOT NULL{f' AND {where}' if where else ''}"
        rows = self.reader.request_rows(_TURNS, where=condition, parameters=parameters)
        found = np.fromiter(rows, dtype=[(name, "f8") for name in _TURNS])
        if not found.size:
            return None
        found = found[np.lexsort((found["turn"], found["conversation"]))]
        return hits_of_conversations(
            found["conversation"],
            found["prompt_tokens"],
            found["output_tokens"],
            prefix_tokens=prefix_tokens,
            block_size=self.block_size,
        )


def computed_prompts(prompt_tokens: FloatArray, first_token_at: FloatArray) -> FloatArray:
    """Return the lengths in tokens of the prompts that the engine has computed: those with a first token."""
    return np.asarray(prompt_tokens[~np.isnan(first_token_at) & (prompt_tokens > 0)], dtype=np.float64)


def prefix_cache_text(promised: str, notes: list[Note]) -> str:
    """Return the state that a run promises, and how it was reached, as in `cold, by reset`."""
    methods = () if promised == AS_IS else cache_methods(notes)
    return f"{promised}, by {' and '.join(methods)}" if methods else promised


def _prefixes(workload: WorkloadConfig) -> tuple[int, int] | None:
    """Length and number of the shared prefixes; None without any. With a hit rate, the length is unknown (0)."""
    if workload.cache_hit_rate is not None:
        return 0, workload.num_prefixes
    from servetop.workload.build import shared_prefix  # imports the datasets

    length, count = shared_prefix(workload) if workload.prefix_len or workload.dataset in RANDOM[1:] else (0, 1)
    return (length, count) if length else None


def _first_uses(reader: RecordingReader, run: RunColumns, *, count: int) -> dict[int, IntArray]:
    """Find the first request of each stage that used a prefix since the cache was emptied.

    A stage with a prompt stream of its own has prefixes of its own too.
    """
    rows = reader.request_rows(("stage", "id", "first_token_at"))
    numbers = np.fromiter(rows, dtype=[("stage", "i8"), ("id", "i8"), ("first_token_at", "f8")])
    own = own_draws(reader.stages())
    cold = cold_stages([stage.change for stage in run.every_stage], run.header.config)
    seen = np.empty(0, dtype=np.int64)
    uses = {}
    for stage in run.every_stage:
        index = stage.change.index
        of_stage = numbers[numbers["stage"] == index]
        ids = np.sort(of_stage["id"][~np.isnan(of_stage["first_token_at"])])
        start = int(of_stage["id"].min(initial=np.iinfo(np.int64).max)) if index in own else 0
        picks = _picks(count, (run.header.config.seed, own.get(index, 0)), ids - start)
        used, places = np.unique(picks, return_index=True)
        if index in cold or index in own:
            seen = seen[:0]
        if not stage.change.warmup:
            uses[index] = ids[places[~np.isin(used, seen)]]
        seen = np.union1d(seen, used)
    return uses


def _picks(count: int, seed: tuple[int, int], positions: IntArray) -> IntArray:
    """Return the prefix of each of these positions of a prompt stream."""
    from servetop.workload.prompts.prompt_source import prefix_picks

    most = int(positions.max(initial=-1)) + 1
    drawn = np.fromiter(itertools.islice(prefix_picks(count, seed), most), np.int64, count=most)
    return np.asarray(drawn[positions], dtype=np.int64)
