"""`servetop doctor`: checks of this machine."""
