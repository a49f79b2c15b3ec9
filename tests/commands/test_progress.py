"""Progress is shown on a terminal and nowhere else."""

import io
import re

import pytest

from optimizer import api
from optimizer.commands.progress import shown, watched
from optimizer.solver import Watched
from optimizer.studies.standing import Standing
from optimizer.units import HOURS_PER_YEAR
from tests.studies.test_sweep import two_types


class Terminal(io.StringIO):
    """A text that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")


def told(stream: io.StringIO, *, quiet: bool = False, delay_s: float = 0.0) -> str:
    with shown("cases", quiet=quiet, stream=stream, delay_s=delay_s) as tell:
        tell(Standing(400, 1000, "1.2 M USD a year", 1e-6))
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", stream.getvalue())


def test_a_terminal_is_shown_done_left_best_and_gap() -> None:
    text = told(Terminal())
    for said in ("cases", "400 done, 600 left", "best 1.2 M USD a year", "gap 0.0001 %"):
        assert said in text


def test_nothing_is_shown_where_there_is_no_terminal_or_no_wish() -> None:
    assert told(io.StringIO()) == ""
    assert told(Terminal(), quiet=True) == ""


def test_what_is_quick_shows_no_bar() -> None:
    assert told(Terminal(), delay_s=60.0) == ""


def test_a_search_that_is_watched_says_the_best_cost_and_its_bound() -> None:
    """What is seen brackets the answer; searches for something else than the least cost are only counted."""
    seen: list[tuple[float | None, float | None]] = []
    instance = two_types(
        choices={"tensor_parallel": [1, 2, 4, 8], "schemes": ["w16a16", "w8a8-fp8"]},
        targets={"spare_fraction": 0.03},
        site={"power_kw": 22.0},
    )
    stop = Watched(lambda: False, lambda best, bound: seen.append((best, bound)))
    plan = api.solve(instance, stop=stop).plan
    assert plan is not None
    assert (None, None) in seen
    costs = [(best, bound) for best, bound in seen if best is not None and bound is not None]
    assert costs
    # Runners-up, which do without something, cost at least as much as the plan.
    assert all(best >= plan.bill.usd_per_hour * (1.0 - 1e-6) for best, _ in costs)
    assert costs[0][1] <= plan.bill.usd_per_hour * (1.0 + 1e-6)


def test_searches_are_told_as_standings() -> None:
    told: list[Standing] = []
    stop = watched(lambda: True, told.append)
    assert isinstance(stop, Watched)
    assert stop()
    for best, bound in ((None, None), (float("inf"), 1.0), (2.0, 1.5), (None, None)):
        stop.see(best, bound)
    usd = f"{2.0 * HOURS_PER_YEAR:,.0f} USD a year"
    assert told == [Standing(0, None), Standing(0, None, usd, 0.25), Standing(1, None)]


def test_nobody_watches_where_nothing_is_shown() -> None:
    def stop() -> bool:
        return False

    with shown("searches", stream=io.StringIO()) as tell:
        assert watched(stop, tell) is stop
