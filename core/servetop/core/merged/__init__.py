"""Ticks and samples of which one stands for several, as a long watch stores them."""
