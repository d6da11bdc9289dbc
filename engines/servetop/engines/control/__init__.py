"""Control-plane HTTP: health checks, model lists, metrics pages, proxies and TLS."""
