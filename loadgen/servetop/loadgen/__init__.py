"""What to send and when, and the senders that do it."""
