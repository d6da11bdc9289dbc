"""Reads recordings for comparisons."""
