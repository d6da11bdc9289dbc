"""Predictions: the stages of a run in virtual time, thousands of times faster than real time."""
