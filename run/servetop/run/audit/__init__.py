"""Runs another load generator against the simulator, and compares what both saw."""
