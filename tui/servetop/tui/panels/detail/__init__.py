"""Panels of the screens behind the number keys, and the tables that they draw."""
