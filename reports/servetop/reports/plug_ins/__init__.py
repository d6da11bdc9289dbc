"""Exporters and report sections of other packages, and the recording that they get."""
