"""Sweeps: presets and the grid of cells."""
