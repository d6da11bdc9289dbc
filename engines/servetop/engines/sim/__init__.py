"""The simulator: a discrete-event model of a serving engine, driven in virtual time or in real time.

`scheduler.Scheduler` decides, `cost.CostModel` prices, `virtual` and `realtime` drive the same core.
"""
