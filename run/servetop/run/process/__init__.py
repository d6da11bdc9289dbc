"""The run process: registry, signals, the pipe to its owner."""
