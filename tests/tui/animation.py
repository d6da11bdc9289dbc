"""Joins several pictures of one screen into an SVG that shows them in turn, without scripts."""

from __future__ import annotations

import re
from collections.abc import Sequence

FRAME_SECONDS = 1.6
LAST_SECONDS = 5.0
_BODY = re.compile(r"(<rect|<text)[^>]*?(/>|>[^<]*</text>)")
_STYLE = re.compile(r"\.(dashboard-r\d+) \{ ([^}]*?) \}")


def animated(pictures: Sequence[str]) -> str:
    """The pictures in turn, the last one longest and alone for readers who prefer reduced motion.

    What all pictures have in common is drawn once.
    """
    styles: dict[str, str] = {}
    frames = [_elements(picture, styles) for picture in pictures]
    common = set(frames[0]).intersection(*frames[1:])
    total = FRAME_SECONDS * (len(frames) - 1) + LAST_SECONDS
    head, tail = pictures[-1].split("<style>")[0], "</g></svg>"
    rules = [f".{name}{{{style}}}" for style, name in styles.items()]
    rules.append(".m{font:20px DejaVu Sans Mono,Menlo,Consolas,monospace}")
    shared = [each for each in frames[-1] if each in common]
    body = ["".join(each for each in shared if each.startswith("<rect"))]
    for number, elements in enumerate(frames):
        start, last = number * FRAME_SECONDS / total * 100, number == len(frames) - 1
        end = 100.0 if last else (number + 1) * FRAME_SECONDS / total * 100
        hidden = "" if number == 0 else f"0%,{start - 0.001:.3f}%{{opacity:0}}"
        after = "" if last else f"{end + 0.001:.3f}%,100%{{opacity:0}}"
        rules.append(f"@keyframes k{number}{{{hidden}{start:.3f}%,{end:.3f}%{{opacity:1}}{after}}}")
        rules.append(f".f{number}{{opacity:{int(last)};animation:k{number} {total:g}s step-end infinite}}")
        body.append(f'<g class="f{number}">{"".join(each for each in elements if each not in common)}</g>')
    body += [each for each in shared if each.startswith("<text")]  # above the backgrounds of the frames
    rules.append("@media (prefers-reduced-motion:reduce){g{animation:none!important}}")
    background = '<rect fill="#121212" x="0" y="0" width="100%" height="100%" rx="8"/>'
    style = f"<style>{''.join(rules)}</style>"
    cells = f'<g class="m" transform="translate(9,41)">{"".join(body)}'
    return head + style + background + cells + tail


def _elements(picture: str, styles: dict[str, str]) -> list[str]:
    """The cells of a picture: backgrounds, then words; classes are renamed to those that all pictures share."""
    own = dict(_STYLE.findall(picture))
    cells = picture[picture.index('clip-path="url(#dashboard-clip-terminal)"') :]
    found = [match.group().replace(' shape-rendering="crispEdges"', "") for match in _BODY.finditer(cells)]

    def renamed(match: re.Match[str]) -> str:
        return f'class="{styles.setdefault(own[match[1]], f"s{len(styles)}")}"'

    return [re.sub(r'class="(dashboard-r\d+)"', renamed, each) for each in found]
