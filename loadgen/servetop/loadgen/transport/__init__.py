"""The network side of a sender: raw sockets, HTTP/1.1, httpx, replicas."""
