"""The sender: sends a plan's requests when they are due and reports once per tick."""
