"""Scheduling policies: small classes for admission, memory, eviction and the make-up of an iteration."""
