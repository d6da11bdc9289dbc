"""Finds damage in a recording."""
