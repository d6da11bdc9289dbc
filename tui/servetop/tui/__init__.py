"""Screens and panels of the dashboard."""
