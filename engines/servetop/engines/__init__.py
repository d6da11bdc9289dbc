"""Starts, attaches to, samples and stops serving engines."""
