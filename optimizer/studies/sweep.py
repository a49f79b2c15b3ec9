"""``sweep``: an instance at many values of its fields, each case solved or proven from its neighbours."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from optimizer.instance.model import Instance
from optimizer.solver import Options
from optimizer.studies.best import prepared
from optimizer.studies.ranges import Axis, case_count, read_axes
from optimizer.studies.standing import Standing, Tell
from optimizer.studies.sweeping import runners
from optimizer.studies.sweeping.journal import Journal
from optimizer.studies.sweeping.layout import Piece, pieces
from optimizer.studies.sweeping.rows import Row
from optimizer.studies.sweeping.work import Job, check_cases
from optimizer.ties import Stop

#: Cases from which on a sweep is worth more than one process.
_WORTH_A_POOL: Final = 16


@dataclass(frozen=True, slots=True)
class Sweep:
    """What a sweep found: its axes and the row of every case that is done, in order of the cases.

    ``count`` is how many cases there are; ``is_whole`` whether all are done.
    """

    name: str
    axes: tuple[Axis, ...]
    rows: tuple[Row, ...]
    count: int
    linked: bool

    @property
    def is_whole(self) -> bool:
        """Whether every case is done."""
        return len(self.rows) == self.count

    @property
    def solved(self) -> int:
        """Cases that were solved on their own; the others are proven from these."""
        return sum(row.proof == "solved" for row in self.rows)


@dataclass(frozen=True, slots=True)
class Asked:
    """A sweep that is understood and checked, before anything is solved."""

    job: Job
    name: str
    count: int
    pieces: tuple[Piece, ...]


def asked(
    instance: Instance,
    vary: Iterable[str],
    *,
    linked: bool = False,
    instance_path: Path | None = None,
    time_limit_s: float | None = None,
    gap: float | None = None,
    reuse: bool = True,
) -> Asked:
    """Read what is to be varied and check every case.

    Raises
    ------
    UsageProblems: some field, value or combination is bad; carries every problem.
    """
    instance = prepared(instance, instance_path)
    axes = read_axes(instance, vary, linked=linked)
    count = case_count(axes, linked=linked)
    given = instance.solver
    options = Options(
        gap=given.gap if gap is None else gap,
        time_limit_s=given.time_limit_s if time_limit_s is None else time_limit_s,
        threads=given.threads,
        seed=given.seed,
    )
    job = Job.of(instance, axes, options, linked=linked, reuse=reuse)
    check_cases(job, count)
    return Asked(job, instance.name, count, pieces(instance, axes, linked=linked, reuse=reuse))


def sweep(
    instance: Instance | Asked,
    vary: Iterable[str] = (),
    *,
    linked: bool = False,
    instance_path: Path | None = None,
    jobs: int = 1,
    scheduler: str | None = None,
    reuse: bool = True,
    time_limit_s: float | None = None,
    gap: float | None = None,
    journal: Path | None = None,
    force: bool = False,
    progress: Tell | None = None,
    stop: Stop | None = None,
) -> Sweep:
    """Solve an instance at every combination of the values of some fields.

    Parameters
    ----------
    instance: the instance, or what ``asked`` made of it (then the arguments that describe the sweep are not read).
    vary: ``PATH=VALUES`` each, as in ``studies.ranges``.
    linked: the fields move together; else every combination is a case.
    jobs: processes on this machine. scheduler: address of a Dask scheduler to use instead.
    reuse: take a solution over to cases of which it is proven to be the solution; False solves every case.
    time_limit_s, gap: of each case; those of the instance when None.
    journal: file that holds what is done, for going on after an interruption; it stays, so that whoever asked removes
        it when the rows are written. force: replace another sweep's.
    progress: told how far it is. stop: asked often; the rows that are done are returned when it says True.

    The rows do not depend on ``jobs``, ``scheduler`` or interruptions.

    Raises
    ------
    UsageProblems: a field, a value, the scheduler or the journal is not usable. SolverError, InternalError: as
    ``api.solve``.
    """
    if isinstance(instance, Instance):
        instance = asked(
            instance,
            vary,
            linked=linked,
            instance_path=instance_path,
            time_limit_s=time_limit_s,
            gap=gap,
            reuse=reuse,
        )
    job, count = instance.job, instance.count
    held = None if journal is None else Journal(journal, job.digest, force=force)
    done: dict[int, list[Row]] = dict(held.done) if held is not None else {}
    told = _Told(count, progress, [row for rows in done.values() for row in rows])
    left = [piece for piece in instance.pieces if piece.number not in done]
    try:
        for piece, rows in _run(job, left, count, jobs, scheduler, stop or (lambda: False), told.one):
            done[piece.number] = rows
            if held is not None:
                held.add(piece, rows)
            told.add(rows)
    finally:
        if held is not None:
            held.close()
    rows = sorted((row for piece in done.values() for row in piece), key=lambda row: row.case)
    return Sweep(instance.name, job.axes, tuple(rows), count, job.linked)


def _run(
    job: Job,
    left: list[Piece],
    count: int,
    jobs: int,
    scheduler: str | None,
    stop: Stop,
    tell: Callable[[Row], None],
) -> Iterator[runners.Done]:
    if scheduler is not None:
        return runners.on_cluster(job, left, stop, scheduler)
    if jobs > 1 and len(left) > 1 and count >= _WORTH_A_POOL:
        return runners.in_processes(job, left, stop, min(jobs, len(left)))
    return runners.here(job, left, stop, tell)


class _Told:
    """Adds up what is done and tells it."""

    def __init__(self, count: int, tell: Tell | None, rows: list[Row]) -> None:
        self._count, self._tell, self._done, self._early = count, tell, 0, 0
        self._best: float | None = None
        self._gap: float | None = None
        self.add(rows)

    def one(self, row: Row) -> None:
        """A row is done whose piece is not."""
        self._early += 1
        self._look([row])

    def add(self, rows: list[Row]) -> None:
        """Some more rows are done, those of a whole piece."""
        self._done += len(rows)
        self._early = 0
        self._look(rows)

    def _look(self, rows: list[Row]) -> None:
        for row in rows:
            if row.usd_per_year is not None and (self._best is None or row.usd_per_year < self._best):
                self._best = row.usd_per_year
            if row.gap_fraction is not None and (self._gap is None or row.gap_fraction > self._gap):
                self._gap = row.gap_fraction
        done = self._done + self._early
        if self._tell is not None and done:
            best = "" if self._best is None else f"{self._best:,.0f} USD a year"
            self._tell(Standing(done, self._count, best, self._gap))
