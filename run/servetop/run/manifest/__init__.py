"""The manifest of a run: what is read from this machine, and whether a recorded run can be repeated here."""
