"""Sender processes: start, messages, work split and merged reports."""
