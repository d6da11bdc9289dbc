"""The state of a dashboard, without screens: what was read from a run, and what panels need of it."""
