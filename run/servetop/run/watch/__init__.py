"""A watch: a server under the load of other clients, read and recorded without a request."""
