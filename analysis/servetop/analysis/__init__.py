"""What the numbers mean: statistics, trust, steady state, diagnosis. Pure functions over ticks and arrays."""
