"""The diagnosis of a run from its ticks: episodes, the bottleneck of now and of the run, sustainable rates."""
