"""What `servetop compare` reports: one tree for text, JSON, Markdown and the dashboard."""
