"""How requests reach a server: raw sockets, HTTP/1.1, httpx, several replicas."""
