"""Server URLs as users write them, and connection errors in one line."""

import errno

import pytest

from servetop.core.errors import UsageError
from servetop.loadgen.transport.endpoint import Endpoint


@pytest.mark.parametrize(
    ("url", "address", "prefix", "tls"),
    [
        ("http://gpu7:8000", "gpu7:8000", "", False),
        ("http://gpu7:8000/", "gpu7:8000", "", False),
        ("https://api.example.com/v1", "api.example.com:443", "", True),
        ("http://host/proxy/7/v1/", "host:80", "/proxy/7", False),
        ("http://[::1]:9", "[::1]:9", "", False),
    ],
)
def test_a_url_is_parsed_into_server_and_prefix(url: str, address: str, prefix: str, tls: bool) -> None:
    endpoint = Endpoint.parse(url)
    assert (endpoint.address, endpoint.server.prefix, endpoint.tls) == (address, prefix, tls)


@pytest.mark.parametrize("url", ["", "ftp://gpu7", "http://", "http://h:99999", "http://h/a b", "http://me:secret@h"])
def test_an_invalid_server_url_is_rejected(url: str) -> None:
    with pytest.raises(UsageError, match=r"invalid server address|contains a password"):
        Endpoint.parse(url)


@pytest.mark.parametrize(
    ("url", "target"),
    [
        ("http://h/v1?api-version=1", "/v1/chat/completions?api-version=1"),
        ("http://h/api/paas/v4/chat/completions", "/api/paas/v4/chat/completions"),
        ("http://h/é", "/%C3%A9/v1/chat/completions"),
    ],
)
def test_requests_go_to_the_path_of_the_api_with_the_query(url: str, target: str) -> None:
    head = Endpoint.parse(url).head("/v1/chat/completions")
    assert head.startswith(f"POST {target} HTTP/1.1\r\n".encode())


def test_the_head_ends_before_the_content_length() -> None:
    head = Endpoint.parse("http://h:1", api_key="k").head("/v1/completions")
    assert head.startswith(b"POST /v1/completions HTTP/1.1\r\nhost: h:1\r\n")
    assert head.endswith(b"authorization: Bearer k\r\n")


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (OSError(errno.EMFILE, "Too many open files"), "too many open files: raise the limit with ulimit -n"),
        (OSError(errno.EADDRNOTAVAIL, "Cannot assign"), "no free local port for another connection"),
        (OSError(errno.EHOSTUNREACH, "No route to host"), "cannot connect to h:1: [Errno 113] No route to host"),
        (UnicodeError("label too long"), "unknown host h: check --url"),
    ],
)
def test_a_failed_connection_is_explained_in_one_line(error: Exception, text: str) -> None:
    assert Endpoint.parse("http://h:1").connect_error(error) == text
