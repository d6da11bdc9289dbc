"""The vocabulary: clock, events, ticks, histograms, configuration, units, numbers as text, errors."""
