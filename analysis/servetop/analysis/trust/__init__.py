"""Whether the figures can be trusted: client fast enough, counts that agree, steady state, other clients."""
