"""Commands that open a dashboard, on a run of their own or on a recording."""
