"""Screens and panels of the dashboard; the only package that imports Textual."""
