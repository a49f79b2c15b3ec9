"""Tables that read their CSV file when first asked and build a row when that row is first asked."""

import csv
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Generic, TypeVar

from optimizer.catalog.base import Row

R = TypeVar("R", bound=Row)

_DATA = Path(__file__).parent / "data"


@cache
def read(name: str) -> tuple[dict[str, str], ...]:
    """Records of a packaged CSV file as text; blank cells are left out, so that defaults hold."""
    with (_DATA / name).open(encoding="utf-8", newline="") as file:
        lines = csv.reader(file)
        columns = next(lines)
        return tuple(
            {column: cell for column, cell in zip(columns, line, strict=True) if cell} for line in lines if line
        )


Records = Callable[[], Mapping[str, Mapping[str, Any]]]


class Table(Mapping[str, R], Generic[R]):
    """Rows of one kind by key, in the order of the file; built one at a time and kept.

    Compiling a row of every table would cost more than a small plan takes to solve.
    """

    def __init__(self, row_class: type[R], records: Records, own: Mapping[str, R] | None = None) -> None:
        self._row_class = row_class
        self._records = records
        self._own = dict(own or {})
        self._built: dict[str, R] = {}

    def __getitem__(self, key: str) -> R:
        if key in self._own:
            return self._own[key]
        if key not in self._built:
            self._built[key] = self._row_class.model_validate(self._records()[key], strict=False)
        return self._built[key]

    def __iter__(self) -> Iterator[str]:
        packaged = self._records()
        yield from packaged
        yield from (key for key in self._own if key not in packaged)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, key: object) -> bool:
        return key in self._own or key in self._records()

    def with_own(self, own: Mapping[str, R]) -> "Table[R]":
        """The same table where ``own`` rows replace or extend the packaged ones."""
        return Table(self._row_class, self._records, {**self._own, **own})


@cache
def keyed(name: str, key: str = "id") -> Mapping[str, Mapping[str, Any]]:
    """Records of a file by their ``key`` column."""
    return {record[key]: record for record in read(name)}


def grouped(records: Iterable[dict[str, str]], column: str) -> dict[str, list[dict[str, str]]]:
    """Records by the value of ``column``, each group in the order of the file."""
    groups: dict[str, list[dict[str, str]]] = {}
    for record in records:
        groups.setdefault(record[column], []).append(record)
    return groups
