"""The wires that the simulator's server can speak: one module for each engine, all on the same core.

`choose.wire_named` finds one; `wire.Wire` is what they share.
"""
