"""Addresses of watched servers: names, files, and what is refused with the place where it is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from servetop.core.errors import EngineError, UsageError
from servetop.run.watch.addresses import WatchedAddress, check_resolvable, distinct, read_addresses, resolved


@pytest.mark.parametrize(
    ("text", "name", "url"),
    [
        ("http://gpu7:8000", "gpu7:8000", "http://gpu7:8000"),
        ("gpu7:8000/v1/", "gpu7:8000", "http://gpu7:8000"),
        ("a = http://gpu7:8000", "a", "http://gpu7:8000"),
        ("gpu7:8001 = http://10.0.0.7:8001", "gpu7:8001", "http://10.0.0.7:8001"),
        ("east-1=https://llm.example/base", "east-1", "https://llm.example/base"),
        ("http://gpu7:8000/llama", "gpu7:8000/llama", "http://gpu7:8000/llama"),
        ("http://h/v1?api-version=2024-06-01", "h", "http://h/?api-version=2024-06-01"),
    ],
)
def test_an_address_has_the_name_that_it_is_given_or_that_of_its_host(text: str, name: str, url: str) -> None:
    found = WatchedAddress.parse(text)
    assert found.name == name
    assert found.url.rstrip("/").replace("/?", "?") == url.replace("/?", "?")


def test_a_file_lists_one_server_a_line_with_comments(tmp_path: Path) -> None:
    path = tmp_path / "servers.txt"
    path.write_text("# of the west\n\nhttp://gpu7:8000  # the old one\n  b = gpu8:8000\n")
    assert [(each.name, each.url) for each in read_addresses(path)] == [
        ("gpu7:8000", "http://gpu7:8000"),
        ("b", "http://gpu8:8000"),
    ]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "lists no servers"),
        ("# nothing\n\n", "lists no servers"),
        ("http://a:1\nhttp://b:x\n", "line 2: invalid server address"),
        ("http://a:1\nhttp://a:1/v1\n", "http://a:1 is given twice"),
        ("x = http://a:1\nx = http://b:1\n", "x is given twice"),
        ("SQLite\0format", "not a list of addresses"),
        ("http://user:word@a:1\n", "line 1: the address contains a password"),
    ],
)
def test_a_file_that_is_no_list_is_refused(tmp_path: Path, text: str, complaint: str) -> None:
    path = tmp_path / "servers.txt"
    path.write_text(text)
    with pytest.raises(UsageError, match=complaint):
        read_addresses(path)


def test_a_file_that_is_missing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such file or directory: name a file"):
        read_addresses(tmp_path / "none.txt")


def test_too_many_servers_are_refused() -> None:
    with pytest.raises(UsageError, match="501 servers: a watch reads 500 at most"):
        distinct(WatchedAddress.parse(f"http://gpu{number}:8000") for number in range(501))


async def test_each_address_of_a_name_is_a_server() -> None:
    found = await resolved(WatchedAddress.parse("pool=http://localhost:8000"))
    assert "http://127.0.0.1:8000" in [each.url for each in found]
    assert "pool/127.0.0.1" in [each.name for each in found]
    address = WatchedAddress.parse("http://127.0.0.1:8000")
    assert await resolved(address) == [address]


async def test_a_name_without_an_address_is_an_error() -> None:
    with pytest.raises(EngineError, match=r"gpu7\.invalid cannot be resolved"):
        await resolved(WatchedAddress.parse("http://gpu7.invalid:8000"))


def test_a_certificate_is_not_that_of_an_address() -> None:
    with pytest.raises(UsageError, match="the certificate of https://gpu7"):
        check_resolvable([WatchedAddress.parse("https://gpu7")])
