"""Text from outside becomes text of the page, and data for its script cannot end the script."""

from __future__ import annotations

import json
import math

from servetop.reports.page.html_text import Markup, data_table, element, items, joined, json_text

ATTACK = '</script><script>window.owned=1</script>"><img src=x onerror=window.owned=1>'


def test_children_and_attributes_are_escaped_unless_they_are_markup() -> None:
    assert element("p", "a < b & c", title='"x"') == '<p title="&quot;x&quot;">a &lt; b &amp; c</p>'
    assert element("p", element("b", "<i>"), None, 3) == "<p><b>&lt;i&gt;</b>3</p>"
    assert element("p", class_="x", data_at=None) == '<p class="x"></p>'
    assert joined("<", Markup("<br>")) == "&lt;<br>"


def test_control_characters_and_bidirectional_overrides_do_not_reach_the_page() -> None:
    assert element("p", "a\x1b[31mb\u202ec\n<d>") == "<p>abc &lt;d&gt;</p>"


def test_lists_and_tables_escape_their_texts_and_name_their_rows() -> None:
    assert items("ul", ["<a>"]) == "<ul><li>&lt;a&gt;</li></ul>"
    table = data_table(("", "value"), [("<name>", 1)], caption="A & B")
    assert "<caption>A &amp; B</caption>" in table
    assert '<th scope="row">&lt;name&gt;</th><td>1</td>' in table


def test_columns_of_texts_are_marked_in_head_and_rows() -> None:
    table = str(data_table(("at", "rate", "what"), [("0:01", "8", "stopped")], caption="Events", texts=(2,)))
    assert '<th scope="col">rate</th><th scope="col" class="text">what</th>' in table
    assert '<td>8</td><td class="text">stopped</td>' in table


def test_json_for_a_script_has_no_markup_and_reads_back() -> None:
    text = json_text({"name": ATTACK, "values": [1.5, math.nan, math.inf], "more": ("&",)})
    assert not set("<>&") & set(text)
    assert json.loads(text) == {"name": ATTACK, "values": [1.5, None, None], "more": ["&"]}
