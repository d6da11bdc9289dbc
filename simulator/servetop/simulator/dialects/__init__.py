"""The engines' HTTP APIs and metrics pages, as the simulator serves them."""
