"""Reads finished and growing recordings."""
