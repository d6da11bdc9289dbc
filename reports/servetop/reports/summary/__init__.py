"""Computes the exact final numbers of a run from its raw rows."""
