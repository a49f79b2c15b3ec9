"""Who does the pieces of a sweep: this process, a pool of processes, or the workers of a Dask cluster.

All give the same rows: a piece's answer depends on the piece alone. A piece whose worker dies is done again elsewhere.
"""

import multiprocessing
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from typing import Any, Final

from optimizer.errors import OptimizerError, Problem, SolverError, UsageProblems
from optimizer.studies.sweeping.chains import Stopped
from optimizer.studies.sweeping.layout import Piece
from optimizer.studies.sweeping.rows import Row
from optimizer.studies.sweeping.work import Job, do_piece
from optimizer.ties import Stop

Done = tuple[Piece, list[Row]]

#: How often a piece is given to another worker when its worker died.
_TRIES: Final = 3
#: Seconds between looks at whether someone asked to stop.
_LOOK_S: Final = 0.2


def here(job: Job, pieces: Sequence[Piece], stop: Stop, tell: Callable[[Row], None] | None = None) -> Iterator[Done]:
    """Every piece in this process, one after the other."""
    for piece in pieces:
        if stop():
            return
        try:
            yield piece, do_piece(job, piece, stop, tell)
        except Stopped:
            return


def in_processes(job: Job, pieces: Sequence[Piece], stop: Stop, workers: int) -> Iterator[Done]:
    """Every piece, in whatever order they end, in this process and others that are started afresh.

    This one has read everything already and works from the first moment on, while the others still start.

    Raises
    ------
    SolverError: workers died again and again.
    """
    left = list(pieces)
    for _ in range(_TRIES):
        done: set[int] = set()
        try:
            for piece, rows in _in_one_pool(job, left, stop, workers - 1):
                done.add(piece.number)
                yield piece, rows
        except BrokenProcessPool:
            left = [piece for piece in left if piece.number not in done]
            continue
        return
    raise SolverError("worker processes of the sweep died again and again: is there memory enough for so many --jobs?")


def _in_one_pool(job: Job, pieces: Sequence[Piece], stop: Stop, others: int) -> Iterator[Done]:
    # Started afresh: a fork would take over the threads of the solver in whatever state they are.
    context = multiprocessing.get_context("spawn")
    asked = context.Event()
    with ProcessPoolExecutor(others, context, _ready, (asked,)) as pool:
        with _without_interrupts():
            waiting = {pool.submit(_in_worker, job, piece): piece for piece in pieces}
        try:
            yield from _as_they_end(job, waiting, stop)
        finally:
            asked.set()
            pool.shutdown(wait=True, cancel_futures=True)


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """Processes that are started within never see a Ctrl-C, not even while they start; here it comes afterwards.

    Ctrl-C reaches every process of the terminal, and the one that was asked decides for all.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _as_they_end(job: Job, waiting: dict[Future[list[Row] | None], Piece], stop: Stop) -> Iterator[Done]:
    """What the others end, and between two looks at them a piece that none of them has begun."""
    while waiting:
        # The last one: the others take them from the first on.
        own = next((future for future in reversed(waiting) if future.cancel()), None)
        if own is not None:
            piece = waiting.pop(own)
            # Where it is stopped on the way, what the others have ended is still told.
            with suppress(Stopped):
                yield piece, do_piece(job, piece, stop)
        ended, _ = wait(waiting, timeout=_LOOK_S if own is None else 0.0, return_when=FIRST_COMPLETED)
        for future in sorted(ended, key=lambda one: waiting[one].number):
            piece, rows = waiting.pop(future), future.result()
            if rows is not None:
                yield piece, rows
        if stop():
            return


class _Worker:
    """What a worker process is given when it starts: the event that asks it to stop."""

    asked: Any = None


def _ready(asked: Any) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # where it could not be held back
    _Worker.asked = asked


def _in_worker(job: Job, piece: Piece) -> list[Row] | None:
    try:
        return do_piece(job, piece, _Worker.asked.is_set)
    except Stopped:
        return None


def on_cluster(job: Job, pieces: Sequence[Piece], stop: Stop, scheduler: str) -> Iterator[Done]:
    """Every piece, in whatever order they end, on the workers of a Dask scheduler.

    Raises
    ------
    UsageProblems: the extra is not installed, or nobody answers at the address.
    """
    try:
        import distributed
    except ModuleNotFoundError:
        raise _unusable(
            scheduler, "no package distributed", "pip install 'gpu-cluster-optimizer[distributed]'"
        ) from None
    try:
        client = distributed.Client(scheduler, timeout=10, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise _unusable(scheduler, f"nobody there ({reason})", "Check the address of the scheduler") from None
    try:
        futures = {
            client.submit(do_piece, job, piece, key=f"sweep-{job.digest}-{piece.number}", retries=_TRIES): piece
            for piece in pieces
        }
        yield from _from_cluster(distributed, client, futures, stop)
    finally:
        client.close()


def _from_cluster(distributed: Any, client: Any, futures: dict[Any, Piece], stop: Stop) -> Iterator[Done]:
    left = dict(futures)
    while left:
        try:
            with client.as_current():
                distributed.wait(list(left), timeout=_LOOK_S, return_when="FIRST_COMPLETED")
        except TimeoutError:
            ended = []
        else:
            ended = [future for future in left if future.done()]
        for future in ended:
            piece = left.pop(future)
            error = future.exception() if future.status == "error" else None
            if isinstance(error, OptimizerError):
                raise error
            if error is not None:
                raise SolverError(f"a piece of the sweep failed on the cluster: {type(error).__name__}: {error}")
            yield piece, future.result()
        if stop():
            for future in left:
                future.cancel()
            return


def _unusable(scheduler: str, found: str, fix: str) -> UsageProblems:
    allowed = "must be a Dask scheduler that answers"
    return UsageProblems(
        (Problem("E-SWEEP-308", "--scheduler", field=scheduler, found=found, allowed=allowed, fix=fix),)
    )
