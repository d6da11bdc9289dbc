"""The judgement of a run from its ticks: episodes, the verdict of now, the verdict of the run and its story."""
