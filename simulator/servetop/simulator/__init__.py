"""A discrete-event model of a serving engine, in virtual time or as a server in real time."""
