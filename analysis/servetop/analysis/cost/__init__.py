"""What serving costs: per token and per request, with intervals, and where two prices break even."""
