"""The cells of a grid, and the order in which they are measured."""

from __future__ import annotations

import itertools
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servetop.core.errors import UsageError
from servetop.run.sweep.grid import Grid, Order, combinations, in_order

LISTS = {"batch": [8, 32], "rate": [1, 2, 4]}
lists = st.dictionaries(
    st.sampled_from(["batch", "in", "out", "rate"]), st.lists(st.integers(1, 9), min_size=1, max_size=4, unique=True)
)


def cells(grid: Grid) -> list[tuple[object, ...]]:
    return [tuple(cell.values()) for cell in combinations(grid, where="f")]


def test_every_combination_is_a_cell_and_the_last_list_varies_fastest() -> None:
    assert cells(Grid(lists=LISTS)) == [(8, 1), (8, 2), (8, 4), (32, 1), (32, 2), (32, 4)]


def test_zipped_lists_are_read_side_by_side() -> None:
    grid = Grid(lists={"in": [512, 2048], "rate": [1, 2], "out": [128, 64]}, zipped=[["in", "out"]])
    assert combinations(grid, where="f") == [
        {"in": 512, "rate": 1, "out": 128},
        {"in": 512, "rate": 2, "out": 128},
        {"in": 2048, "rate": 1, "out": 64},
        {"in": 2048, "rate": 2, "out": 64},
    ]


def test_excluded_combinations_are_left_out_and_single_cells_follow() -> None:
    grid = Grid(lists=LISTS, exclude=[{"batch": 8, "rate": 4}, {"rate": 2}], cells=[{"batch": 64, "rate": 16}])
    assert cells(grid) == [(8, 1), (32, 1), (32, 4), (64, 16)]


def test_single_cells_alone() -> None:
    assert cells(Grid(cells=[{"rate": 1}, {"rate": 2, "in": 512}])) == [(1,), (2, 512)]


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        (
            Grid(lists=LISTS, zipped=[["batch", "rate"]]),
            "zip needs lists of one length, but values are: batch 2, rate 3",
        ),
        (Grid(lists=LISTS, zipped=[["batch", "out"]]), "zip names 'out', which has no list"),
        (Grid(lists=LISTS, zipped=[["batch"]]), "name at least two keys"),
        (Grid(lists=LISTS, exclude=[{"out": 3}]), "exclude names 'out', which has no list"),
        (Grid(lists=LISTS, exclude=[{"rate": 3}]), "matches no cell"),
        (Grid(lists=LISTS, exclude=[{"batch": 8}, {"batch": 32}]), "exclude leaves no cell of 6"),
        (Grid(lists=LISTS, cells=[{"batch": 8, "rate": 1}]), r"\[\[cell\]\] 1 is in the sweep already"),
        (Grid(lists={"a": range(1000), "b": range(1000)}), "1,000,000 combinations"),
    ],
)
def test_a_contradiction_is_refused_and_named(grid: Grid, message: str) -> None:
    with pytest.raises(UsageError, match=f"^f: .*{message}"):
        combinations(grid, where="f")


@given(lists)
def test_the_number_of_cells_is_the_product_of_the_lengths(varied: dict[str, list[int]]) -> None:
    found = combinations(Grid(lists=varied), where="f")
    count = 1
    for values in varied.values():
        count *= len(values)
    assert len(found) == count
    assert all(list(cell) == list(varied) for cell in found)
    assert len({tuple(cell.values()) for cell in found}) == count


@given(st.lists(st.integers(1, 3), min_size=1, max_size=12), st.integers(1, 4), st.sampled_from(Order), st.integers())
def test_each_order_measures_each_cell_once_a_repeat(needs: list[int], repeats: int, order: Order, seed: int) -> None:
    cells = list(enumerate(needs))
    ordered = in_order(cells, repeats, order=order, seed=seed, engine=lambda cell: cell[1])
    assert Counter(ordered) == Counter((cell, repeat) for cell in cells for repeat in range(repeats))
    assert ordered == in_order(cells, repeats, order=order, seed=seed, engine=lambda cell: cell[1])


@given(st.lists(st.integers(1, 4), min_size=1, max_size=12), st.integers(1, 3))
def test_the_order_of_fewest_restarts_sets_each_engine_once(needs: list[int], repeats: int) -> None:
    ordered = in_order(
        list(enumerate(needs)), repeats, order=Order.FEWEST_RESTARTS, seed=0, engine=lambda cell: cell[1]
    )
    engines = [cell[1] for cell, _ in ordered]
    changes = sum(one != other for one, other in itertools.pairwise(engines))
    assert changes == len(set(needs)) - 1


def test_abba_turns_each_second_round() -> None:
    ordered = in_order("AB", 4, order=Order.ABBA, seed=0, engine=lambda _: None)
    assert "".join(cell for cell, _ in ordered) == "ABBAABBA"
    assert [repeat for _, repeat in ordered] == [0, 0, 1, 1, 2, 2, 3, 3]


def test_a_shuffled_order_has_all_cells_of_a_round_before_the_next_one() -> None:
    ordered = in_order(range(20), 2, order=Order.SHUFFLED, seed=1, engine=lambda _: None)
    assert [repeat for _, repeat in ordered] == [0] * 20 + [1] * 20
    assert [cell for cell, _ in ordered[:20]] != list(range(20))


def test_rounds_in_the_default_order_repeat_no_cell_before_the_others() -> None:
    ordered = in_order("AB", 2, order=Order.FEWEST_RESTARTS, seed=0, engine=lambda _: None, in_rounds=True)
    assert ordered == [("A", 0), ("B", 0), ("A", 1), ("B", 1)]


def test_an_unknown_order_is_refused() -> None:
    assert Order.parse("abba") is Order.ABBA
    with pytest.raises(UsageError, match=r"^order = 'random': use fewest-restarts, shuffled, ABBA"):
        Order.parse("random")
