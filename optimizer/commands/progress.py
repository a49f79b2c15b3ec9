"""Progress of long verbs on stderr: done, left, best, gap; only on a terminal, only after two seconds."""

import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, TextIO

from optimizer.studies.standing import Standing, Tell

#: Seconds before anything is shown: what is quicker needs no bar.
DELAY_S: Final = 2.0
#: Seconds between two drawings.
_EVERY_S: Final = 0.1


@contextmanager
def shown(noun: str, *, quiet: bool = False, stream: TextIO | None = None, delay_s: float = DELAY_S) -> Iterator[Tell]:
    """A callback that shows a standing as one line on a terminal, and nothing where there is none.

    Args:
        noun: What is counted, in the plural: "cases".
        quiet: Show nothing.
        stream: Where to show it; stderr when None.
        delay_s: Seconds before anything is shown.
    """
    stream = sys.stderr if stream is None else stream
    if quiet or not stream.isatty():
        yield _nothing
        return
    line = _Line(noun, stream, delay_s)
    try:
        yield line.tell
    finally:
        line.close()


def _nothing(_standing: Standing) -> None:
    """There is no terminal to show it on."""


def watched(stop: Callable[[], bool], tell: Tell) -> Callable[[], bool]:
    """A ``stop`` whose searches are told: how many are done, and of the one under way the best cost and its gap.

    ``stop`` itself where nothing is shown. The solver is loaded, so call it where the solver is needed anyway.
    """
    if tell is _nothing:
        return stop
    from optimizer.solver import Watched
    from optimizer.units import HOURS_PER_YEAR

    begun = 0

    def see(best: float | None, bound: float | None) -> None:
        nonlocal begun
        if best is None or bound is None:
            begun += 1
            tell(Standing(begun - 1, None))
        elif math.isfinite(best) and best > 0.0:
            gap = max(0.0, 1.0 - bound / best) if math.isfinite(bound) else None
            tell(Standing(begun - 1, None, f"{best * HOURS_PER_YEAR:,.0f} USD a year", gap))

    return Watched(stop, see)


class _Line:
    """One line that is drawn over and over, and is gone at the end."""

    def __init__(self, noun: str, stream: TextIO, delay_s: float) -> None:
        self._noun, self._stream = noun, stream
        self._due = time.monotonic() + delay_s
        self._bar: Any = None
        self._task: Any = None

    def tell(self, standing: Standing) -> None:
        """Show a standing, when it is time to."""
        now = time.monotonic()
        if now < self._due:
            return
        self._due = now + _EVERY_S
        if self._bar is None:
            self._open()
        left = "" if standing.total is None else f", {standing.total - standing.done:,} left"
        said = [f"{standing.done:,} done{left}"]
        if standing.best:
            said.append(f"best {standing.best}")
        if standing.gap_fraction is not None:
            said.append(f"gap {100.0 * standing.gap_fraction:.2g} %")
        self._bar.update(self._task, completed=standing.done, total=standing.total, said=" · ".join(said))

    def _open(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
        from rich.table import Column

        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=8),
            TextColumn("{task.fields[said]}", markup=False, table_column=Column(no_wrap=True)),
            TimeElapsedColumn(table_column=Column(min_width=7)),
            TimeRemainingColumn(table_column=Column(min_width=7)),
            console=Console(file=self._stream, highlight=False),
            transient=True,
            refresh_per_second=8,
        )
        self._task = self._bar.add_task(self._noun, total=None, said="")
        self._bar.start()

    def close(self) -> None:
        """Take the line away."""
        if self._bar is not None:
            self._bar.stop()
