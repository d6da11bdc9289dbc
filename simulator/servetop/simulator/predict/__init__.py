"""Predictions: a run's stages in virtual time, thousands of times faster than real time."""
