"""Comparison of the simulator with published measurements."""
