"""What was read from a run so far, and what a screen needs of it; pure."""
