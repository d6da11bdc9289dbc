"""Profiles of GPUs, models and engines, the cost model and the KV cache capacity."""
