"""Verdicts with their evidence: trust, consistency, steady state, diagnosis and anomalies."""
