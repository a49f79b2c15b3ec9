"""Ways to fill a server with replicas of several widths (docs/method.md section 5)."""

from collections.abc import Iterator
from itertools import islice, pairwise


def widths_form_chain(widths: set[int], accelerators: int) -> bool:
    """Whether replicas of these widths fill servers without waste: each divides the next and the last the server."""
    chain = [*sorted(width for width in widths if width <= accelerators), accelerators]
    return all(large % small == 0 for small, large in pairwise(chain))


#: Where widths do not nest and a server has more maximal fillings than this, each server holds replicas of one width.
MAX_FILLINGS = 64


def fillings(widths: tuple[int, ...], accelerators: int) -> tuple[tuple[int, ...], ...]:
    """Ways to fill one server with replicas of the given widths, as counts by width in their order.

    Every maximal filling where there are at most ``MAX_FILLINGS``; else, in rack-sized servers with many widths, one
    filling a width: like replicas stand together (docs/method.md section 5).
    """
    found = tuple(islice(maximal_patterns(widths, accelerators), MAX_FILLINGS + 1))
    if len(found) <= MAX_FILLINGS:
        return found
    return tuple(
        tuple(accelerators // width if place == own else 0 for place in range(len(widths)))
        for own, width in enumerate(widths)
    )


def maximal_patterns(widths: tuple[int, ...], accelerators: int) -> Iterator[tuple[int, ...]]:
    """Every way to fill one server with replicas of the given falling widths to which none can be added."""
    smallest = widths[-1]

    def extend(position: int, counts: tuple[int, ...], left: int) -> Iterator[tuple[int, ...]]:
        if position == len(widths):
            if left < smallest:
                yield counts
            return
        for count in range(left // widths[position], -1, -1):
            yield from extend(position + 1, (*counts, count), left - count * widths[position])

    return extend(0, (), accelerators)
