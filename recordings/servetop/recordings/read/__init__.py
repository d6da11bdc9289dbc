"""Reading a recording, finished or growing."""
