"""The animated picture: what its frames share and when each is shown."""

from tests.tui.animation import animated

PICTURE = """<svg><style>.dashboard-r{number} {{ fill: #fff }}</style>
<g clip-path="url(#dashboard-clip-terminal)"><rect fill="#000" x="0"/>
<text class="dashboard-r{number}" x="1">same</text><text class="dashboard-r{number}" x="2">{word}</text></g></svg>"""


def test_cells_in_all_pictures_are_drawn_once_and_others_in_their_frame() -> None:
    svg = animated([PICTURE.format(number=1, word="first"), PICTURE.format(number=2, word="second")])
    assert svg.count(">same<") == 1
    assert '<g class="f0"><text class="s0" x="2">first</text></g>' in svg
    assert '<g class="f1"><text class="s0" x="2">second</text></g>' in svg
    assert svg.index("second") < svg.index(">same<")  # the words in common are above the frames' backgrounds


def test_only_the_last_frame_is_shown_without_animation() -> None:
    svg = animated([PICTURE.format(number=1, word=word) for word in ("a", "b", "c")])
    assert [f".f{number}{{opacity:{shown};" in svg for number, shown in ((0, 0), (1, 0), (2, 1))] == [True] * 3
