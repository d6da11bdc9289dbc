"""URLs with the wrong scheme."""

from __future__ import annotations

import pytest

from servetop.core.errors import EngineError
from servetop.engines.control.control_client import NOT_TLS, HttpResult
from servetop.engines.control.url_scheme import refuse_wrong_scheme
from tests.engines.conftest import PageServer

BROKEN = HttpResult(error="malformed response")


async def test_https_for_plain_http_is_refused() -> None:
    with pytest.raises(EngineError, match="https://h: it does not speak TLS"):
        await refuse_wrong_scheme("https://h", {"/health": HttpResult(error=NOT_TLS)})


@pytest.mark.parametrize("result", [BROKEN, HttpResult(status=400, body=b"sent to an HTTPS server")])
async def test_http_for_a_tls_port_is_refused_after_a_handshake(tls_server: PageServer, result: HttpResult) -> None:
    url = tls_server.url.replace("https:", "http:")
    with pytest.raises(EngineError, match="speaks TLS: write https://"):
        await refuse_wrong_scheme(url, {"/health": result})


@pytest.mark.parametrize(
    "result",
    [
        HttpResult(status=200),
        HttpResult(status=400, body=b"bad request"),
        HttpResult(error="connection refused", refused=True),
        HttpResult(error="no response within 5 s", late=True),
    ],
)
async def test_other_results_say_nothing_about_the_scheme(tls_server: PageServer, result: HttpResult) -> None:
    await refuse_wrong_scheme(tls_server.url.replace("https:", "http:"), {"/health": result})


async def test_a_malformed_response_of_plain_http_is_another_error(vllm_server: PageServer) -> None:
    await refuse_wrong_scheme(vllm_server.url, {"/health": BROKEN})
