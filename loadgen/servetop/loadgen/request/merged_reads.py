"""When chunks came that were read together: the kernel's stamp is the last one's, of the others there are bounds."""

from __future__ import annotations

from collections.abc import Sequence

from servetop.loadgen.request.chunk_log import ChunkLog


def times_read_together(bearing: Sequence[bool], at: float, *, since: float, log: ChunkLog) -> Sequence[float]:
    """A time for each chunk of a read that ended at `at`, in which nothing came before `since`.

    Chunks that bear tokens are spread evenly from the last one in the log, as far as `since` allows: a client that was
    held up saw several that came one after the other. Those that came as one are moved apart by no more than the time
    between two looks at the socket. The log is told how uncertain the gaps beside them are.
    """
    count = sum(bearing)
    if count < 2:
        return [at] * len(bearing)
    last = log.last
    earliest = min(max(since, last), at)
    log.doubt(at - earliest, count)
    times, number = [], 0
    for bears in bearing:
        number += bears
        times.append(at if number == count else max(earliest, last + (at - last) * number / count))
    return times
