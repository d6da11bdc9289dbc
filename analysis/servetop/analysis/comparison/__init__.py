"""Compares runs: relative differences with intervals that respect dependence, verdicts, and the cost of an answer."""
