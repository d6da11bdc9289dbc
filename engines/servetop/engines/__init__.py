"""Starts, attaches to, samples and stops serving engines; their dialects and metrics."""
