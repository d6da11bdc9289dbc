"""Keeps terminal control sequences and secrets out of printed and stored text."""
