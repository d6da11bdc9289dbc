"""The playhead, in live and finished runs."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from servetop.tui.state.playhead import FASTEST, SLOWEST, Playhead

times = st.floats(min_value=0, max_value=1e4, allow_nan=False)
playheads = st.builds(
    Playhead,
    at=times,
    speed=st.sampled_from([0.25, 0.5, 1.0, 2.0, 64.0]),
    playing=st.booleans(),
    following=st.booleans(),
)


def test_a_growing_run_is_followed_and_a_finished_one_opens_paused_at_its_end() -> None:
    assert Playhead.opened(edge=90.0, growing=True) == Playhead(at=90.0, following=True)
    assert Playhead.opened(edge=90.0, growing=False) == Playhead(at=90.0, playing=False)
    assert Playhead.opened(edge=90.0, growing=False, start_at=20.0) == Playhead(at=20.0, playing=True)
    assert Playhead.opened(edge=90.0, growing=True, start_at=200.0) == Playhead(at=90.0)


def test_following_stays_at_the_edge_as_it_moves() -> None:
    assert Playhead(at=90.0, following=True).advanced(0.05, edge=90.25).at == 90.25


def test_playing_moves_by_the_viewers_time_and_speed_and_stops_at_the_edge() -> None:
    played = Playhead(at=10.0, speed=4.0).advanced(0.5, edge=100.0)
    assert played.at == 12.0
    assert played.advanced(1000.0, edge=100.0).at == 100.0


def test_pausing_and_playing_again() -> None:
    paused = Playhead(at=10.0).toggled(edge=100.0)
    assert paused.advanced(5.0, edge=100.0).at == 10.0
    assert paused.toggled(edge=100.0).advanced(5.0, edge=100.0).at == 15.0


def test_playing_at_the_end_restarts_just_before_the_load() -> None:
    for ended in (Playhead(at=100.0), Playhead(at=100.0, playing=False), Playhead(at=100.0, following=True)):
        assert ended.toggled(edge=100.0) == Playhead(at=0.0, playing=True)
        assert ended.toggled(edge=100.0, load_at=0.5) == Playhead(at=0.0, playing=True)
        assert ended.toggled(edge=100.0, load_at=66.0) == Playhead(at=64.0, playing=True)


def test_seeking_back_stops_following_and_seeking_forward_keeps_it() -> None:
    live = Playhead(at=100.0, following=True)
    assert live.moved_by(-5, edge=100.0) == Playhead(at=95.0)
    assert live.moved_by(5, edge=100.0) == live
    assert live.moved_by(-5, edge=100.0).at_edge(edge=101.0) == Playhead(at=101.0, following=True)


def test_a_step_lands_on_a_tick_and_pauses() -> None:
    stepped = Playhead(at=10.1).stepped(1, edge=100.0)
    assert (stepped.at, stepped.playing) == (10.25, False)
    assert stepped.stepped(-1, edge=100.0).at == 10.0


def test_speed_goes_from_a_quarter_to_sixty_four() -> None:
    fast = slow = Playhead()
    for _ in range(20):
        fast, slow = fast.scaled(2), slow.scaled(0.5)
    assert (fast.speed, slow.speed) == (FASTEST, SLOWEST)


@given(playheads, times, st.floats(-1e4, 1e4, allow_nan=False), st.integers(-50, 50), times)
def test_the_playhead_stays_within_the_run(
    playhead: Playhead, edge: float, by: float, ticks: int, elapsed: float
) -> None:
    inside = Playhead(at=min(playhead.at, edge), speed=playhead.speed, playing=playhead.playing)
    for moved in (
        inside.moved_by(by, edge=edge),
        inside.stepped(ticks, edge=edge),
        inside.advanced(elapsed, edge=edge),
        inside.toggled(edge=edge),
        inside.toggled(edge=edge, load_at=by),
        inside.paused_at(by, edge=edge),
        inside.at_start(),
        inside.at_edge(edge=edge),
    ):
        assert 0 <= moved.at <= edge
        assert SLOWEST <= moved.speed <= FASTEST


@given(playheads, times, times, times)
def test_a_paused_playhead_stands_still(playhead: Playhead, edge: float, first: float, second: float) -> None:
    paused = Playhead(at=playhead.at, playing=False, speed=playhead.speed)
    assert paused.advanced(first, edge=edge).advanced(second, edge=edge).at == playhead.at
