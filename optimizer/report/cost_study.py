"""Why a plan costs what it costs, for the screen: unit costs, buying against renting, what moves the total most."""

from dataclasses import dataclass

from optimizer.plan import Plan
from optimizer.plan_cost import CostStudy
from optimizer.report.words import percent, signed_percent, significant, usd, wrapped


def cost_study_lines(plan: Plan, width: int) -> list[str]:
    """The lines of a plan whose cost was explained; none where it was not."""
    study = plan.cost_study
    if study is None:
        return []
    if plan.training is None:
        money = _Money(1.0, "per year")
        return [*_units(plan, width), *_ways(study, money, width), *_even(study, width), *_figures(study, money, width)]
    # Runs are paid once: what they cost is the present value, and no hour of the year weighs buying against renting.
    runs = "for the run" if len(plan.training.jobs) == 1 else "for the runs"
    whole = _Money(plan.bill.usd_over_horizon / plan.bill.usd_per_year, runs)
    return [*_ways(study, whole, width), *_figures(study, whole, width)]


@dataclass(frozen=True, slots=True)
class _Money:
    """How yearly costs of a study are told: times what, and in which words."""

    times: float
    words: str

    def told(self, usd_per_year: float) -> str:
        return usd(self.times * usd_per_year)


def _units(plan: Plan, width: int) -> list[str]:
    bill = plan.bill
    known = (
        (bill.usd_per_month, "per month"),
        (bill.usd_per_accelerator_hour_installed, "per accelerator-hour installed"),
        (bill.usd_per_accelerator_hour_used, "per accelerator-hour used"),
        (bill.usd_per_million_total_tokens, "per million tokens, prompt and output"),
    )
    parts = [f"{usd(value)} {words}" for value, words in known if value is not None]
    return wrapped("Unit", parts, width) if parts else []


def _ways(study: CostStudy, money: _Money, width: int) -> list[str]:
    lines: list[str] = []
    for number, way in enumerate(study.ways[1:]):
        if way.usd_per_year is None:
            parts = [f"{way.name}: nothing fits"]
        else:
            extra = "the same" if not way.extra_fraction else signed_percent(way.extra_fraction)
            parts = [f"{way.name}: {money.told(way.usd_per_year)} {money.words} ({extra}): {way.summary}"]
        parts += [] if way.is_allowed else ["outside the instance's choices"]
        lines += wrapped("Ways" if number == 0 else "", parts, width)
    return lines


def _even(study: CostStudy, width: int) -> list[str]:
    bought, rented = study.ways[1].usd_per_year, study.ways[2].usd_per_year
    if bought is None or rented is None:
        missing = "bought" if bought is None else "rented"
        return wrapped("Even", [f"nothing {missing} fits, so there is no break-even"], width)
    share = study.break_even_utilization_fraction
    use = (
        "renting by the hour is cheaper even at every hour of the year"
        if share is None
        else f"buying is cheaper than renting by the hour from {percent(share)} of the hours on"
    )
    mean = f"the mean load is {percent(study.mean_load_fraction)}"
    month = "buying does not pay back within the horizon"
    if study.break_even_month is not None:
        later = study.break_even_month_discounted
        discounted = f"month {later}" if later is not None else "never within the horizon"
        month = f"buying has cost less than renting by month {study.break_even_month}, discounted {discounted}"
    return wrapped("Even", [use, mean, month], width)


def _figures(study: CostStudy, money: _Money, width: int) -> list[str]:
    lines: list[str] = []
    for number, one in enumerate(study.figures):
        ends = [
            f"{significant(value)}: {'nothing fits' if cost is None else money.told(cost)}"
            for value, cost in ((one.low, one.low_usd_per_year), (one.high, one.high_usd_per_year))
        ]
        parts = [f"{one.name}, now {significant(one.now)} {one.unit}".rstrip(), *ends, one.trust]
        parts += ["another choice is best there"] if one.is_decisive else []
        lines += wrapped("Moves" if number == 0 else "", parts, width)
    if study.moved < study.movable:
        lines += wrapped("", [f"stopped: {study.moved} of {study.movable} figures moved"], width)
    return lines
