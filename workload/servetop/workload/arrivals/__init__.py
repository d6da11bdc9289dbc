"""Arrival processes and rate curves."""
