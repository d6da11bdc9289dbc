"""Ticks and columns of a run as series that grow at their end, with a bounded memory."""
