"""Scheduling policies of the simulator: admission, iteration, KV reservation and eviction (preemption)."""
