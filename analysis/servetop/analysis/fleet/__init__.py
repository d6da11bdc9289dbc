"""Several watched servers: the ticks of each, what hurts, in which order, and the state of all in one line."""
