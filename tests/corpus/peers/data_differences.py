"""What differs between a peer's reading of a data file and the right one."""

from __future__ import annotations

from collections.abc import Iterator

from tests.corpus.data_corpus import DataCase
from tests.corpus.peers.data_readings import DataPeerReading
from tests.corpus.peers.differences import Difference

DATA_FIELDS = ("rows", "texts", "turns", "system", "outputs", "lengths", "times")


def data_differences(case: DataCase, reading: DataPeerReading) -> Iterator[Difference]:
    """Yield what a peer reads otherwise: the number of usable rows, else their values.

    A file with malformed rows is read right without them, and also if it is refused.
    """
    right_rows = _rows(case)
    if reading.skipped or (reading.error and ("bad" in case.facts or "broken" in case.facts)):
        return
    if reading.rows != right_rows:
        said = f"{reading.rows} rows {reading.error}".rstrip()
        yield Difference(case=case.name, field="rows", found=said, right=f"{right_rows} rows")
        return
    for field in DATA_FIELDS[1:]:
        found, right = getattr(reading, field), case.expected(field)
        if found is None or right is None:
            continue
        if reading.shuffled:
            found, right = sorted(found), sorted(right)
        if found != right:
            yield Difference(case=case.name, field=field, found=found, right=right)


def _rows(case: DataCase) -> int:
    return next((len(case.facts[key]) for key in ("texts", "turns", "lengths") if key in case.facts), 0)
