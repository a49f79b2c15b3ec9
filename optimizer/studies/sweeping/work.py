"""What a worker does: a piece of a sweep, from texts that any process can be sent, to rows."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import cache, cached_property, lru_cache

from optimizer.errors import UsageProblems
from optimizer.instance.field_paths import document_of, from_document
from optimizer.instance.model import Instance
from optimizer.offer import Offer
from optimizer.solver import Options
from optimizer.studies.ranges import Axis, case_points
from optimizer.studies.sweeping.chains import Case, Chain
from optimizer.studies.sweeping.layout import LAYOUT, Piece, sorts_of, stage_keys
from optimizer.studies.sweeping.rows import Row
from optimizer.studies.sweeping.stages import Stages
from optimizer.ties import Stop


@dataclass(frozen=True, eq=False)
class Job:
    """A sweep as it is sent to workers: the instance as JSON text, its axes, how cases are solved."""

    instance_json: str
    axes: tuple[Axis, ...]
    linked: bool
    options: Options
    reuse: bool

    @classmethod
    def of(cls, instance: Instance, axes: tuple[Axis, ...], options: Options, *, linked: bool, reuse: bool) -> "Job":
        """The job of an instance whose model path is resolved."""
        return cls(json.dumps(document_of(instance)), axes, linked, options, reuse)

    @cached_property
    def digest(self) -> str:
        """What tells this sweep from another: the instance, the fields and values, the options and the version."""
        from optimizer import __version__

        axes = [[[field.name for field in axis.fields], axis.values] for axis in self.axes]
        options = asdict(self.options)
        content = [__version__, LAYOUT, self.instance_json, axes, self.linked, self.reuse, options]
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()

    def __hash__(self) -> int:
        return hash(self.digest)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Job) and other.digest == self.digest


class _Session:
    """What a process keeps between pieces of one sweep."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._document = json.loads(job.instance_json)
        self._instance = from_document(self._document, told_as="the sweep's instance")
        self._sorts = sorts_of(self._instance, job.axes)
        self._stages = Stages()

    def rows(self, piece: Piece, stop: Stop | None, tell: Callable[[Row], None] | None) -> list[Row]:
        """Rows of a piece, by case."""
        cases = [self._case(number) for number in piece.cases]
        if self._instance.workload.kind == "training":
            from optimizer.studies.sweeping.runs import training_rows

            return training_rows(self._instance, cases, stop, tell)
        chain = Chain(piece.kind, cases, self._job.options, piece.shape, stop)
        rows = []
        for row in chain.rows(reuse=self._job.reuse):
            rows.append(row)
            if tell is not None:
                tell(row)
        return sorted(rows, key=lambda row: row.case)

    def _case(self, number: int) -> Case:
        job = self._job
        points = case_points(job.axes, number, linked=job.linked)
        document = self._document
        for axis, point in zip(job.axes, points, strict=True):
            document = axis.applied(document, point)
        values = tuple(axis.points[point] for axis, point in zip(job.axes, points, strict=True))
        instance = from_document(document, told_as=f"case {number}")
        keys = stage_keys(self._sorts, points)

        @cache
        def offer() -> Offer:
            # Held as long as the piece: cases between two prices are looked at again and again.
            return self._stages.offer(instance, keys)

        return Case(number, values, instance, offer)


@lru_cache(maxsize=2)
def _session(job: Job) -> _Session:
    """One session a process and sweep: workers get many pieces of the same one."""
    return _Session(job)


def do_piece(job: Job, piece: Piece, stop: Stop | None = None, tell: Callable[[Row], None] | None = None) -> list[Row]:
    """Rows of a piece of a sweep, by case. ``tell`` is given each as soon as it is proven.

    Raises
    ------
    chains.Stopped: ``stop`` said so; rows of the piece are lost.
    """
    return _session(job).rows(piece, stop, tell)


def check_cases(job: Job, count: int) -> None:
    """Whether every case is a valid instance.

    Raises
    ------
    UsageProblems: some are not; carries every problem, each told once with the first case that has it.
    """
    from optimizer.errors import InputError, Problem

    document = json.loads(job.instance_json)
    found: dict[tuple[str, str, str], Problem] = {}
    for number in range(count):
        points = case_points(job.axes, number, linked=job.linked)
        moved = document
        for axis, point in zip(job.axes, points, strict=True):
            moved = axis.applied(moved, point)
        try:
            from_document(moved, told_as=f"case {number}")
        except InputError as error:
            for one in error.problems:
                values = ", ".join(
                    f"{axis.label} = {axis.points[point]}" for axis, point in zip(job.axes, points, strict=True)
                )
                told = replace(one, fix=f"First met with {values}")
                found.setdefault((one.code, one.field, one.found if len(found) < 20 else ""), told)
    if found:
        raise UsageProblems(tuple(found.values()))
