"""What identifies a run, and what differs between the manifests of two runs."""
