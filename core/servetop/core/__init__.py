"""The vocabulary: clock, events, ticks, histograms, configuration, units and errors."""
