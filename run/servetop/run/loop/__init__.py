"""One run while it lasts: boot, stages, senders, ticks, commands, stop."""
