"""The state of the prefix cache when a load begins."""
