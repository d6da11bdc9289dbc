"""Prompts of the workloads that read files: traces, texts, conversations, corpora."""

from __future__ import annotations

from dataclasses import dataclass

from servetop.core.config import WorkloadConfig
from servetop.workload.datasets.catalogue import CORPORA, check_dataset_name
from servetop.workload.datasets.files import shipped, whole_text
from servetop.workload.datasets.shared_dataset import SharedDataset
from servetop.workload.prompts.conversation_scripts import ConversationPrompts
from servetop.workload.prompts.prompt_source import (
    CorpusPrompts,
    LengthStream,
    PromptSource,
    SharedPrefixes,
    TextPrompts,
    TracePrompts,
    Vocabulary,
)


@dataclass(frozen=True, slots=True)
class DatasetPrompts:
    """The prompts that a workload takes from its dataset."""

    workload: WorkloadConfig
    lengths: LengthStream
    prefixes: SharedPrefixes
    dataset: SharedDataset
    """The file, and the counts of rows that are left out."""
    seed: tuple[int, ...]

    def source(self, vocabulary: Vocabulary, corpus_ids: tuple[int, ...]) -> PromptSource:
        """Return the source for the kind of the dataset; `corpus_ids` are the engine's token ids of a corpus."""
        workload, own_lengths = self.workload, not self.workload.lengths
        dataset = self.dataset
        trace, texts = dataset.trace(self.seed[0]), dataset.texts()
        if trace is not None:
            return TracePrompts(
                rows=lambda: dataset.rows(trace),
                vocabulary=vocabulary,
                prefixes=self.prefixes,
                block_tokens=trace.file_format.block_tokens,
                seed=self.seed,
                lengths=None if own_lengths else self.lengths,
            )
        if texts is not None and workload.conversational:
            return ConversationPrompts(
                rows=lambda: dataset.rows(texts),
                lengths=self.lengths,
                own_lengths=own_lengths,
                workload=workload,
                seed=self.seed,
            )
        if texts is not None:
            return TextPrompts(rows=lambda: dataset.rows(texts), lengths=self.lengths, own_lengths=own_lengths)
        check_dataset_name(workload.dataset)  # that of a plug-in may be missing on the machine of a sender
        return CorpusPrompts(
            text=corpus_text(workload.dataset),
            ids=corpus_ids,
            lengths=self.lengths,
            prefix_len=workload.prefix_len,
            num_prefixes=workload.num_prefixes,
            seed=self.seed,
        )


def corpus_text(name: str) -> str:
    """Return the text of a corpus that is part of servetop."""
    return whole_text(shipped(CORPORA[name]))
