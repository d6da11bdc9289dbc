"""A watch of servers on the dashboard: its keys, and which of several servers is shown."""
