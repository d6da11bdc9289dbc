"""Whole runs in virtual time, returned as the ticks and events that a recording would hold."""
