"""Scrapes stay packed; only those of the requested instants are unpacked."""

from __future__ import annotations

import numpy as np

from servetop.analysis.exported.scrape_history import ScrapeHistory, SeriesName
from servetop.core.interfaces.series_scrape import MAX_SERIES, SeriesScrape, pack_numbers


def test_names_count_for_the_scrapes_after_them() -> None:
    history = ScrapeHistory()
    history.extend(
        [
            SeriesScrape(at=0.0, numbers=pack_numbers([9.0])),  # before the first names: unusable
            SeriesScrape(at=1.0, names="a\nb{le=1}", numbers=pack_numbers([1.0, 2.0])),
            SeriesScrape(at=2.0, numbers=pack_numbers([3.0, 4.0])),
            SeriesScrape(at=3.0, names="b{le=1}\nc", numbers=pack_numbers([5.0, 6.0])),
        ]
    )
    assert history.columns == [SeriesName("a"), SeriesName("b", (("le", "1"),)), SeriesName("c")]
    assert np.nan_to_num(history.values([0, 1, 2]), nan=-1.0).tolist() == [[1, 2, -1], [3, 4, -1], [-1, 5, 6]]


def test_a_scrape_is_found_by_its_time() -> None:
    history = ScrapeHistory()
    history.extend(SeriesScrape(at=float(at), names="a", numbers=pack_numbers([0.0])) for at in (5, 6, 7, 3))
    assert [history.up_to(at) for at in (4.9, 5.0, 6.5, 100.0)] == [0, 1, 2, 3]  # the one out of order is left out


def test_the_number_of_series_is_limited() -> None:
    history = ScrapeHistory()
    for start in (0, 3000, 6000):
        names = [f"s{number}" for number in range(start, start + 3000)]
        history.extend([SeriesScrape(at=start, names="\n".join(names), numbers=pack_numbers([1.0] * 3000))])
    assert len(history.columns) == MAX_SERIES
    assert np.nansum(history.values([2])) == 0.0


def test_a_name_is_parsed_as_it_is_written() -> None:
    for name in (SeriesName("a"), SeriesName("a:b_total", (("le", "+Inf"), ("engine", "0")))):
        assert SeriesName.parse(str(name)) == name
