"""Prices as people type them."""

from __future__ import annotations

import pytest

from servetop.core.config_values.price import HourlyPrice, Prices, TokenPrices, parse_price
from servetop.core.errors import UsageError


@pytest.mark.parametrize(
    ("text", "price"),
    [
        ("2.5/h", HourlyPrice(text="2.5/h", amount=2.5)),
        ("$2.50/h", HourlyPrice(text="$2.50/h", amount=2.5, currency="$")),
        (" 12 EUR / hour ", HourlyPrice(text="12 EUR / hour", amount=12.0, currency="EUR")),
        ("€2/GPU/h", HourlyPrice(text="€2/GPU/h", amount=2.0, currency="€", each_gpu=True)),
        ("2/h/gpu", HourlyPrice(text="2/h/gpu", amount=2.0, each_gpu=True)),
        ("3:0.3:15/Mtok", TokenPrices(text="3:0.3:15/Mtok", input=3.0, cached=0.3, output=15.0)),
        ("$0.6/Mtok", TokenPrices(text="$0.6/Mtok", input=0.6, cached=0.6, output=0.6, currency="$")),
    ],
)
def test_a_price_is_read_as_written(text: str, price: HourlyPrice | TokenPrices) -> None:
    assert parse_price(text) == price


@pytest.mark.parametrize(
    "text",
    ["", "2.5", "/h", "-1/h", "0/h", "2.5/d", "1:2/h", "1:2/Mtok", "1:2:3:4/Mtok", "0:0:0/Mtok", "$2€/h", "nan/h"],
)
def test_other_texts_are_refused_with_the_forms_that_exist(text: str) -> None:
    with pytest.raises(UsageError, match=r"^--price .*: use 2\.5/h for all that serves, 2\.5/gpu/h, or"):
        parse_price(text)


def test_the_hourly_price_is_the_servers_wherever_it_stands() -> None:
    prices = Prices.parse(["0.6/Mtok", "2.5/h"])
    assert prices == Prices(server=parse_hourly("2.5/h"), other=parse_price("0.6/Mtok"))


@pytest.mark.parametrize("other", ["4/h", "2.5/h"])
def test_of_two_hourly_prices_the_first_is_the_servers(other: str) -> None:
    assert Prices.parse(["2.5/h", other]) == Prices(server=parse_hourly("2.5/h"), other=parse_price(other))


def parse_hourly(text: str) -> HourlyPrice:
    price = parse_price(text)
    assert isinstance(price, HourlyPrice)
    return price


def test_no_price_is_no_prices() -> None:
    assert Prices.parse([]) is None


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["0.6/Mtok"], "add what the server costs per hour"),
        (["1/h", "2/h", "3/h"], "3 prices: give that of the server, and one to compare it with"),
        (["$1/h", "2€/h"], "give both in the same currency"),
    ],
)
def test_prices_that_do_not_fit_together_are_refused(texts: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Prices.parse(texts)
