"""Servers that a run attaches to: how they are reached, and how they want their requests."""
