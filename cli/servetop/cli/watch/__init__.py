"""`servetop watch`: the command, and its progress without a dashboard."""
