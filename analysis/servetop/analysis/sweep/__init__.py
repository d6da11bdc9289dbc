"""The verdict of a sweep: its cells, the best of them, and the load that each batch size sustains."""
