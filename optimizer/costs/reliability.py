"""Failures as money: failure rates from counts, time between interruptions, spares, goodput of training."""

from optimizer.units import HOURS_PER_YEAR

HOURS_PER_DAY = 24.0
DAYS_PER_YEAR = HOURS_PER_YEAR / HOURS_PER_DAY


def failures_per_year(events: float, units: float, days: float, days_per_year: float = DAYS_PER_YEAR) -> float:
    """Events of one unit in a year from a count over ``days``: ``events / units / days x days per year``."""
    return events / units / days * days_per_year


def hours_between_interruptions(units: float, interruptions_per_unit_year: float) -> float:
    """Mean time between interruptions of a job on ``units`` accelerators: ``8766 / (N f)``; it falls as 1/N.

    The rate measured in Meta's Llama 3 405B run is 0.173 per accelerator and year.
    """
    return HOURS_PER_YEAR / (units * interruptions_per_unit_year)


def spares_fraction(permanent_failures_per_year: float, restock_days: float, hot_fraction: float = 0.0) -> float:
    """Least share of spares: those that fail while replacements are on their way, and a hot pool for availability.

    ``s = AFR x restock days / 365.25 + s_hot``.
    """
    return permanent_failures_per_year * restock_days / DAYS_PER_YEAR + hot_fraction


def training_goodput(
    checkpoint_interval_h: float, checkpoint_save_h: float, restart_h: float, hours_between: float
) -> float:
    """Share of hours that are not lost: ``1 - (t_ckpt/2 + t_restart)/MTBF - t_save/t_ckpt``, not below 0.

    An interruption loses half an interval on average and the restart; each interval loses the time of the save.
    """
    lost = (checkpoint_interval_h / 2.0 + restart_h) / hours_between + checkpoint_save_h / checkpoint_interval_h
    return max(0.0, 1.0 - lost)
