"""Summaries and tables on the terminal."""
