"""Prices that people type: of the machines that serve, per hour, or of tokens, per million."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from servetop.core.errors import UsageError

_NUMBER = r"\d{1,12}(?:\.\d{1,9})?"
_CURRENCY = r"(?:[^\W\d_]{1,4}|[$€£¥₩₹])?"
_PRICE = re.compile(
    rf"\s*(?P<before>{_CURRENCY})\s*(?P<amounts>{_NUMBER}(?::{_NUMBER})*)\s*(?P<after>{_CURRENCY})\s*"
    r"/(?P<unit>[a-z/ ]+)",
    re.IGNORECASE,
)
_HOURS = {"h": False, "hour": False, "gpu/h": True, "gpu/hour": True, "h/gpu": True, "hour/gpu": True}
"""Units of time, and whether a price is of each GPU."""
_MILLION_TOKENS = ("mtok", "mtokens")
_FORMS = "use 2.5/h for all that serves, 2.5/gpu/h, or for a million input:cached:output tokens 3:0.3:15/Mtok"


@dataclass(frozen=True, slots=True, kw_only=True)
class HourlyPrice:
    """What the machines cost."""

    text: str
    """As written, without spaces around it."""
    amount: float
    """Per hour."""
    currency: str = ""
    """Such as `$` or `EUR`; empty without one."""
    each_gpu: bool = False
    """Whether it is the price of each GPU, or of all that serves together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenPrices:
    """What tokens cost elsewhere, such as at an API; each per million tokens."""

    text: str
    """As written, without spaces around it."""
    input: float
    cached: float
    output: float
    currency: str = ""

    @property
    def weights(self) -> tuple[float, float, float]:
        """The prices, as weights of input, cached and output tokens."""
        return self.input, self.cached, self.output


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """What a server costs, and perhaps an alternative."""

    server: HourlyPrice
    other: HourlyPrice | TokenPrices | None = None

    @classmethod
    def parse(cls, texts: Sequence[str]) -> Prices | None:
        """Parse up to two prices, the server's first; None without any, UsageError for what makes no sense."""
        found = [parse_price(text) for text in texts]
        hourly = [each for each in found if isinstance(each, HourlyPrice)]
        if not found:
            return None
        if not hourly:
            raise UsageError(f"--price {texts[0]}: add what the server costs per hour, as in --price 2.5/h")
        if len(found) > 2:
            raise UsageError(f"--price: {len(found)} prices: give that of the server, and one to compare it with")
        other = next((each for each in found if each is not hourly[0]), None)
        if other is not None and other.currency != hourly[0].currency:
            raise UsageError(f"--price {texts[0]} and {texts[1]}: give both in the same currency")
        return cls(server=hourly[0], other=other)


def parse_price(text: str) -> HourlyPrice | TokenPrices:
    """Parse `2.5/h`, `$2.5/gpu/h` or `3:0.3:15 EUR/Mtok` (a single number: for every token); UsageError otherwise."""
    match = _PRICE.fullmatch(text)
    unit = "" if match is None else "".join(match["unit"].lower().split())
    if match is None or (match["before"] and match["after"]) or unit not in (*_HOURS, *_MILLION_TOKENS):
        raise UsageError(f"--price {text}: {_FORMS}")
    currency = match["before"] or match["after"]
    amounts = [float(each) for each in match["amounts"].split(":")]
    if unit in _HOURS and len(amounts) == 1 and amounts[0] > 0:
        return HourlyPrice(text=text.strip(), amount=amounts[0], currency=currency, each_gpu=_HOURS[unit])
    if unit in _HOURS or len(amounts) == 2 or len(amounts) > 3 or not any(amounts):
        raise UsageError(f"--price {text}: {_FORMS}")
    of_input, cached, output = amounts * 3 if len(amounts) == 1 else amounts
    return TokenPrices(text=text.strip(), input=of_input, cached=cached, output=output, currency=currency)
