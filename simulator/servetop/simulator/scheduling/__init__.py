"""The scheduler: queue, running batch, KV blocks, prefix cache."""
