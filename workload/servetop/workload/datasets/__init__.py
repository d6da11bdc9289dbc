"""Datasets and traces, read as streams."""
