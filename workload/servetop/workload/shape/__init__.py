"""The shape of a recorded load: logs of gateways and servers become a trace without any text of theirs."""
