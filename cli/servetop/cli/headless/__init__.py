"""Runs without a dashboard: progress on stderr, the summary on stdout."""
