"""One run from boot to end, sweeps, and the processes behind them."""
