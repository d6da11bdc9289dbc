"""Start, attach, sample and stop serving engines; their wire dialects; the simulator."""
