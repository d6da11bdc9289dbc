"""HTML from values: text from outside is escaped, and data for scripts is JSON without markup."""

from __future__ import annotations

import html
import json
import math
from collections.abc import Iterable, Mapping, Sequence

from servetop.core.text.sanitize import sanitize_line


class Markup(str):
    """HTML that is inserted as it is; any other text is escaped."""

    __slots__ = ()


def element(name: str, *children: object, **attributes: object) -> Markup:
    """Return an element; children that are not Markup are escaped, an attribute that is None is left out.

    An underscore at the end of an attribute's name is dropped, as in `class_`; others are hyphens.
    """
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{html.escape(sanitize_line(str(value)))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Markup(f"<{name}{given}>{joined(*children)}</{name}>")


def joined(*children: object) -> Markup:
    """Return children one after the other; those that are not Markup are escaped, None is left out."""
    return Markup(
        "".join(each if isinstance(each, Markup) else _escaped(each) for each in children if each is not None)
    )


def _escaped(value: object) -> str:
    return html.escape(sanitize_line(str(value)))


def items(kind: str, children: Sequence[object], **attributes: object) -> Markup:
    """Return a list, `ul` or `ol`, of these children."""
    return element(kind, *(element("li", each) for each in children), **attributes)


def command_line(text: str) -> Markup:
    """Return a command that a button copies."""
    button = element("button", "Copy", type="button", class_="copy", hidden="hidden")
    return element("span", element("code", text), button, class_="command")


def commands_list(commands: Mapping[str, str]) -> Markup:
    """Return commands, each below its purpose."""
    return element(
        "dl", *(joined(element("dt", what), element("dd", command_line(text))) for what, text in commands.items())
    )


def data_table(
    columns: Sequence[object], rows: Sequence[Sequence[object]], *, caption: str, texts: Iterable[int] = ()
) -> Markup:
    """Return a table whose first column has headers of rows; it scrolls on a narrow screen.

    `texts` are the places of columns with sentences or names, which are aligned left; figures are aligned right.
    """
    kind = dict.fromkeys(texts, "text")
    head = [element("th", each, scope="col", class_=kind.get(place)) for place, each in enumerate(columns)]
    body = [
        element(
            "tr",
            element("th", row[0], scope="row"),
            *(element("td", each, class_=kind.get(place)) for place, each in enumerate(row[1:], 1)),
        )
        for row in rows
    ]
    table = element(
        "table", element("caption", caption), element("thead", element("tr", *head)), element("tbody", *body)
    )
    return element("div", table, class_="scroll", tabindex=0, role="region", aria_label=caption)


def json_text(value: object) -> Markup:
    """Return JSON for a script element: no character in it ends the element, NaN and infinity are null."""
    text = json.dumps(_finite(value), separators=(",", ":"), allow_nan=False)
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def _finite(value: object) -> object:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): _finite(each) for key, each in value.items()}
    return [_finite(each) for each in value] if isinstance(value, (list, tuple)) else value
