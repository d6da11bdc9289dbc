"""Protocols between packages that must not import each other."""
