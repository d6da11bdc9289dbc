"""Statistics that know nothing of servers: quantiles, errors of dependent observations, tests of a growing series."""
