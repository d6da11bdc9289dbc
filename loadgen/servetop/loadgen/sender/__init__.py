"""The sender: plays a load plan over a transport and reports once a tick."""
