"""Chooses the transport of a sender: raw sockets or httpx, to one server or to several replicas."""

from __future__ import annotations

from servetop.core.clock import MonotonicClock
from servetop.core.interfaces.dialect import Dialect
from servetop.loadgen.messages import SenderSetup
from servetop.loadgen.transport.endpoint import Endpoint
from servetop.loadgen.transport.raw_transport import RawTransport
from servetop.loadgen.transport.replica_transport import ReplicaTransport
from servetop.loadgen.transport.transport import TransportFactory


def transport_factory(setup: SenderSetup, dialect: Dialect, clock: MonotonicClock) -> TransportFactory:
    """Return the factory of the transport to the setup's server, or to all its replicas."""
    endpoints = [
        Endpoint.parse(url, api_key=setup.api_key, headers=setup.workload.headers, connection=setup.connection)
        for url in (setup.url, *setup.more_urls)
    ]
    factories = [_factory_to(endpoint, setup, dialect, clock=clock) for endpoint in endpoints]
    if len(factories) == 1:
        return factories[0]
    return lambda listener: ReplicaTransport(factories, endpoints, clock=clock, listener=listener)


def _factory_to(endpoint: Endpoint, setup: SenderSetup, dialect: Dialect, *, clock: MonotonicClock) -> TransportFactory:
    ids = f"servetop-{setup.origin_ns:x}-{setup.worker}"  # request ids are unique to the run
    if setup.connection.transport == "httpx":
        from servetop.loadgen.transport.httpx_transport import HttpxTransport

        return lambda listener: HttpxTransport(
            endpoint, path=dialect.path, request_ids=ids, clock=clock, listener=listener
        )
    return lambda listener: RawTransport(endpoint, path=dialect.path, request_ids=ids, clock=clock, listener=listener)
