"""Measures two configurations alternately until their difference is known."""
