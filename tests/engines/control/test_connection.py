"""Which transport and which proxy apply to a server, and which settings are refused."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servetop.core.config import ConnectionConfig
from servetop.core.errors import UsageError
from servetop.engines.control.connection import check_connection, check_proxy, environment_proxy, route_to

PROXY = {"HTTP_PROXY": "http://ann:secret@proxy:3128", "https_proxy": "proxy:3129"}


@pytest.mark.parametrize(
    ("url", "spared", "proxy"),
    [
        ("http://gpu7:8000", "", "http://ann:secret@proxy:3128"),
        ("https://gpu7", "", "http://proxy:3129"),
        ("http://localhost:8000", "", None),
        ("http://127.0.0.1:8000", "", None),
        ("http://[::1]:8000", "", None),
        ("http://gpu7:8000", "*", None),
        ("http://gpu7:8000", "gpu8, gpu7", None),
        ("http://gpu7:8000", "gpu7:8000", None),
        ("http://gpu7:8001", "gpu7:8000", "http://ann:secret@proxy:3128"),
        ("http://a.cluster.org", ".cluster.org", None),
        ("http://a.cluster.org", "cluster.org", None),
        ("http://acluster.org", "cluster.org", "http://ann:secret@proxy:3128"),
        ("http://10.1.2.3", "10.0.0.0/8", None),
        ("http://[fd00::7]:80", "[fd00::7]:80", None),
    ],
)
def test_the_environment_names_a_proxy_and_spares_some_hosts(url: str, spared: str, proxy: str | None) -> None:
    assert environment_proxy(url, {**PROXY, "NO_PROXY": spared}) == proxy


@given(st.text(max_size=30))
def test_no_entry_of_no_proxy_breaks_it(spared: str) -> None:
    assert environment_proxy("http://gpu7", {**PROXY, "NO_PROXY": spared}) in (None, PROXY["HTTP_PROXY"])


def test_a_proxy_selects_the_httpx_transport_with_a_remark_without_credentials() -> None:
    route = route_to("http://gpu7", ConnectionConfig(), PROXY)
    assert route.connection.transport == "httpx"
    assert route.remark == "transport httpx, because of the proxy proxy:3128"
    direct = route_to("http://gpu7", ConnectionConfig(transport="raw"), PROXY)
    assert (direct.connection.transport, direct.connection.proxy) == ("raw", None)
    assert direct.remark == "the proxy proxy:3128 of the environment is not used: --transport raw"
    assert route_to("http://gpu7", ConnectionConfig(), {}).connection.transport == "raw"


def test_a_client_certificate_takes_the_httpx_transport_where_there_is_tls() -> None:
    connection = ConnectionConfig(client_cert="me.pem")
    route = route_to("https://gpu7", connection, {})
    assert (route.connection.transport, route.remark) == ("httpx", "transport httpx, because of the client certificate")
    assert route_to("http://gpu7", connection, {}).connection.transport == "raw"


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"transport": "curl"}, "--transport curl: give raw or httpx"),
        ({"proxy": "socks5://proxy:1080"}, "invalid proxy address"),
        ({"proxy": "http://proxy:99999"}, "invalid proxy address"),
        ({"proxy": "http://ann:secret@proxy"}, "export the whole address as HTTPS_PROXY"),
        ({"proxy": "http://proxy", "transport": "raw"}, "leave out --proxy, or give --transport httpx"),
        ({"client_key": "key.pem"}, "give --client-cert too"),
        ({"ca_cert": "/nowhere/ca.pem"}, "cannot use /nowhere/ca.pem: No such file or directory"),
    ],
)
def test_settings_that_cannot_work_are_refused(settings: dict[str, str], words: str) -> None:
    with pytest.raises(UsageError, match=r"^[^\n]+$") as refusal:
        check_connection(ConnectionConfig(**settings), attached=True)  # type: ignore[arg-type]
    assert words in str(refusal.value)
    assert "secret" not in str(refusal.value)


def test_a_file_that_holds_no_certificate_is_named(tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    file.write_text("nothing of the kind")
    with pytest.raises(UsageError, match=r"cannot use .*ca\.pem \(.*give PEM files"):
        check_connection(ConnectionConfig(ca_cert=str(file)), attached=True)


def test_an_engine_that_servetop_starts_is_reached_directly() -> None:
    check_connection(ConnectionConfig(transport="httpx"), attached=False)
    with pytest.raises(UsageError, match="are for a server at --url"):
        check_connection(ConnectionConfig(insecure=True), attached=False)


def test_the_words_about_a_bad_proxy_of_the_environment_hold_no_credentials() -> None:
    with pytest.raises(UsageError) as refusal:
        check_proxy("socks5://ann:secret@proxy")
    assert "secret" not in str(refusal.value)
