"""The vocabulary of servetop: events, ticks, statistics, configuration, units, time and errors."""
