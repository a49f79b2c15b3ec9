"""Which units of prefill and decode replicas are offered beside replicas that do both (docs/method.md section 2).

A unit is x prefill and y decode replicas (x and y from ``choices.unit_replicas``, without a common divisor: a multiple
of a unit is several units). Both roles run on one server type in one scheme, so that a prompt's cache can be taken over
as it is. Replicas narrower than a server divide it and each other, and a unit fills servers without a gap: inside one
it takes a whole part of it (1, 2, 4 or 8 of 8 accelerators), beyond one whole servers.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd

import numpy as np
from numpy.typing import NDArray

from optimizer.performance.prepare import PreparedColumns
from optimizer.performance.roles import PROMPTS_HELD
from optimizer.performance.serving import Prepared

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]


class TooManyUnits(Exception):  # noqa: N818 - it reports the size of a search
    """There are more units than asked for."""


@dataclass(frozen=True, slots=True)
class Block:
    """Rows of one server type and scheme: the first, how many, size of a server, whether units may span servers."""

    first: int
    rows: int
    server: int
    may_span: bool


@dataclass(frozen=True, slots=True, eq=False)
class Units:
    """Units as columns: the rows that each role's replicas are of, how many there are, and what a unit takes."""

    prefill: IntArray
    decode: IntArray
    prefill_replicas: IntArray
    decode_replicas: IntArray
    width: IntArray
    servers: FloatArray

    @property
    def size(self) -> int:
        """Rows."""
        return int(self.width.size)


def units_of(
    blocks: Sequence[Block],
    counts: Sequence[int],
    width: IntArray,
    servers: FloatArray,
    plain: Prepared,
    prompts: PreparedColumns,
    most: int | None = None,
) -> Units:
    """Every unit of one request class, of rows that start in their role.

    Raises
    ------
    TooManyUnits: there are more than ``most``; told before that much memory is taken.
    """
    ratios = [(x, y) for x in sorted(set(counts)) for y in sorted(set(counts)) if gcd(x, y) == 1]
    able = prompts.largest_concurrency >= PROMPTS_HELD * prompts.ranks
    decodes = plain.largest_concurrency >= 1.0
    found = []
    size = 0
    for block in blocks:
        rows = np.arange(block.first, block.first + block.rows, dtype=np.int64)
        first = _undominated(rows[able[rows]], width, servers, prompts)
        second = rows[decodes[rows]]
        if not first.size or not second.size or not ratios:
            continue
        grid = np.meshgrid(first, second, np.arange(len(ratios)), indexing="ij")
        p, d, ratio = (axis.ravel() for axis in grid)
        x, y = (np.array([one[side] for one in ratios], dtype=np.int64)[ratio] for side in (0, 1))
        whole, fits = _servers(block.server, x, y, (width[p], width[d]), (servers[p], servers[d]))
        kept = fits & ((whole <= 1.0) | block.may_span)
        total = x * width[p] + y * width[d]
        found.append(tuple(column[kept] for column in (p, d, x, y, total, whole)))
        size += int(np.count_nonzero(kept))
        if most is not None and size > most:
            raise TooManyUnits
    if not found:
        none = np.empty(0, dtype=np.int64)
        return Units(none, none, none, none, none, np.empty(0))
    p, d, x, y, total, whole = (np.concatenate([one[part] for one in found]) for part in range(6))
    return Units(p, d, x, y, total, whole)


def _servers(
    size: int, x: IntArray, y: IntArray, widths: tuple[IntArray, IntArray], servers: tuple[FloatArray, FloatArray]
) -> tuple[FloatArray, NDArray[np.bool_]]:
    """(what a unit blocks of a server, or whole servers; whether its replicas fill servers without a gap)."""
    inside, whole = np.zeros(x.size, dtype=np.int64), np.zeros(x.size)
    fits = np.ones(x.size, dtype=np.bool_)
    for count, width, spans in zip((x, y), widths, servers, strict=True):
        wide = width > size
        inside += np.where(wide, 0, count * width)
        whole += np.where(wide, count * spans, 0.0)
        fits &= wide | (size % width == 0)
    large, small = np.maximum(*widths), np.minimum(*widths)
    fits &= (large > size) | (large % small == 0)
    alone = (whole == 0.0) & (inside <= size)
    fits &= np.where(alone, size % np.maximum(inside, 1) == 0, inside % size == 0)
    return np.where(alone, inside / size, whole + inside // size), fits


def _undominated(rows: IntArray, width: IntArray, servers: FloatArray, prompts: PreparedColumns) -> IntArray:
    """Prefill layouts that some unit may need: of two that take the same room one may be no worse in all that counts.

    Proof: put the other in its place; the unit takes as much room, carries at least as much, and no limit sees more.
    """
    if not rows.size:
        return rows
    prompts_gib = PROMPTS_HELD * prompts.ranks / prompts.attention_data_parallel * prompts.sequence_gib
    columns = (
        prompts.prefill_ms,
        prompts.prefill_share_ms,
        prompts.prefill_share_ms / prompts.ranks,
        prompts.weights_gib,
        prompts.fixed_gib + np.maximum(prompts_gib, prompts.longest_gib),
        prompts.prefill_link_gb_s,
        -prompts.link_limit_gb_s,
        # Accelerators of a rank: they share the cache's way out.
        -(width / prompts.attention_data_parallel),
    )
    worth = np.stack([column[rows] for column in columns], axis=1)
    _, room = np.unique(np.stack((width[rows], servers[rows])), axis=1, return_inverse=True)
    kept = np.ones(rows.size, dtype=np.bool_)
    for number in range(int(room.max()) + 1):
        # One row of a room against all others at a time: memory grows with the rows, not with their square.
        members = np.flatnonzero(room == number)
        for place in members if members.size > 1 else ():
            mine = members[kept[members]]
            no_worse = np.all(worth[mine] <= worth[place], axis=1)
            no_better = np.all(worth[mine] >= worth[place], axis=1)
            kept[place] = not np.any(no_worse & (~no_better | (mine < place)))
    result: IntArray = rows[kept]
    return result
