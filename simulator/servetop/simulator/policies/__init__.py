"""Scheduling policies of the simulator: admission, KV block reservation, preemption and iteration contents."""
