"""Panels of the live screen."""
