"""What can be seen of a server that is only watched."""
