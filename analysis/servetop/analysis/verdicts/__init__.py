"""Judgements with their evidence: trust, consistency, steady state, diagnosis, anomalies."""
