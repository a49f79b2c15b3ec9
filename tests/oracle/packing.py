"""Which replicas fit into how many servers: widths of whole replicas in a server, or whole servers for wider ones."""

from collections.abc import Iterator
from functools import cache
from itertools import pairwise


@cache
def fits(widths: tuple[tuple[int, int], ...], servers: int, size: int) -> bool:
    """Whether counts of replicas, as (width, count), fit ``servers`` servers of ``size`` accelerators.

    A replica wider than a server takes whole servers; the others must each lie in one server. Exact bin packing: the
    widest replica goes into every kind of server that has room, servers with equal room being alike.
    """
    narrow = []
    for width, count in widths:
        if width > size:
            servers -= count * (width // size)
        else:
            narrow += [width] * count
    if servers < 0:
        return False
    if sum(narrow) > servers * size:
        return False
    return _place(tuple(sorted(narrow, reverse=True)), (size,) * servers)


@cache
def _place(items: tuple[int, ...], room: tuple[int, ...]) -> bool:
    if not items:
        return True
    if sum(items) > sum(one for one in room if one >= items[-1]):
        return False
    first, rest = items[0], items[1:]
    for left in sorted(set(room)):
        if left >= first:
            after = list(room)
            after.remove(left)
            if _place(rest, tuple(sorted([*after, left - first]))):
                return True
    return False


def divides(widths: tuple[int, ...], size: int) -> bool:
    """Whether narrow widths divide one another and the server, so that counting accelerators is exact."""
    chain = [*sorted({width for width in widths if width <= size}), size]
    return all(large % small == 0 for small, large in pairwise(chain))


def maximal_counts(widths: tuple[int, ...], servers: int, size: int) -> Iterator[tuple[int, ...]]:
    """Counts of replicas, one a width, that fit and to which no replica of any of the widths can be added."""
    exact_by_sum = divides(widths, size)

    def room_for(counts: tuple[int, ...]) -> bool:
        if exact_by_sum:
            # Wide replicas take whole servers, so accelerators count alike for them.
            return sum(w * c for w, c in zip(widths, counts, strict=True)) <= servers * size
        merged: dict[int, int] = {}
        for width, count in zip(widths, counts, strict=True):
            merged[width] = merged.get(width, 0) + count
        return fits(tuple(sorted((w, c) for w, c in merged.items() if c)), servers, size)

    def extend(position: int, counts: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        if position == len(widths):
            grown = ((*counts[:i], counts[i] + 1, *counts[i + 1 :]) for i in range(len(widths)))
            if not any(room_for(one) for one in grown):
                yield counts
            return
        rest = (0,) * (len(widths) - position - 1)
        count = 0
        while room_for((*counts, count, *rest)):
            yield from extend(position + 1, (*counts, count))
            count += 1

    yield from extend(0, ())
