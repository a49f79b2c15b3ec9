"""Prepared rows of two kinds under one numbering: replicas that do both phases, and units of two roles."""

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optimizer.performance.confidence import ConfidentPrepared
from optimizer.performance.factors import FloatArray
from optimizer.performance.roles import UnitPrepared
from optimizer.performance.serving import Prepared, ServingPrediction

Rows = NDArray[np.int64]
Single = Prepared | UnitPrepared | ConfidentPrepared


@dataclass(frozen=True, slots=True, eq=False)
class Joined:
    """Rows of ``first`` and of ``second`` in any order: ``place`` points into the one that ``is_second`` names."""

    first: Single
    second: Single
    is_second: NDArray[np.bool_]
    place: Rows

    @classmethod
    def of(cls, first: Single, second: Single) -> "Joined":
        """All rows of the first, then all of the second."""
        mask = np.arange(first.size + second.size) >= first.size
        return cls(first, second, mask, np.concatenate((np.arange(first.size), np.arange(second.size))))

    @property
    def size(self) -> int:
        """Rows."""
        return int(self.place.size)

    @property
    def largest_concurrency(self) -> FloatArray:
        """Of each row."""
        out = np.empty(self.size)
        for part, mine in ((self.first, ~self.is_second), (self.second, self.is_second)):
            out[mine] = part.largest_concurrency[self.place[mine]]
        return out

    def take(self, rows: Rows | NDArray[np.bool_]) -> "Joined":
        """The given rows, by index (may repeat) or mask."""
        return Joined(self.first, self.second, self.is_second[rows], self.place[rows])

    def at(self, concurrency: ArrayLike) -> ServingPrediction:
        """Predict at requests in flight, a scalar or one value a row."""
        load = np.broadcast_to(np.asarray(concurrency, dtype=np.float64), (self.size,))
        columns = {one.name: np.empty(self.size) for one in fields(ServingPrediction)}
        for part, mine in ((self.first, ~self.is_second), (self.second, self.is_second)):
            if mine.any():
                seen = part.take(self.place[mine]).at(load[mine])
                for name, values in columns.items():
                    values[mine] = getattr(seen, name)
        return ServingPrediction(**columns)


AnyPrepared = Single | Joined
