"""Sender processes: start, messages, pool, division of plans, merged reports."""
