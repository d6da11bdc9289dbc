"""Screens: the live dashboard, the log, help, and the questions that are asked."""
