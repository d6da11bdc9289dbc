"""Commands that open a dashboard, on their own run or on a recording."""
