"""Prefix caches: what a workload can find in them, and what was promised about them."""
