"""The simulator's emulation of the engines' HTTP APIs and metrics pages."""
