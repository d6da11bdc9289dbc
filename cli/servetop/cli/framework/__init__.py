"""Typer's command classes without the parts that are slow to import."""
