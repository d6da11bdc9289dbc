"""`servetop doctor`: what this machine has and what that means for a run."""
