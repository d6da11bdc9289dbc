"""The engine's server process: start-up, log, watchdog, containers, ports."""
