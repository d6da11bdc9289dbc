"""Panels: each draws one part of a frame, independently of the others."""
