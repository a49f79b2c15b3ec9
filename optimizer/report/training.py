"""A plan for training on one screen: jobs, servers, days, cost, limits, next best."""

from optimizer.plan import Plan
from optimizer.plan_training import TrainedJob, TrainingLayout
from optimizer.report.words import counted, percent, signed_percent, significant, usd, wrapped

_METHODS = {
    "one_site": "",
    "synchronous": "synchronous over sites",
    "low_communication": "low communication over sites",
}


def layout_words(lay: TrainingLayout) -> str:
    """TP 8 x PP 15 x DP 208, without what is 1."""
    parts = [f"TP {lay.tensor_parallel}"]
    for name, degree in (
        ("PP", lay.pipeline_parallel),
        ("CP", lay.context_parallel),
        ("EP", lay.expert_parallel),
    ):
        if degree > 1:
            interleaved = name == "PP" and lay.virtual_stages > 1
            parts.append(f"{name} {degree}" + (f" ({lay.virtual_stages} virtual)" if interleaved else ""))
    parts.append(f"DP {lay.data_parallel}")
    return " x ".join(parts)


def job_lines(plan: Plan, width: int) -> list[str]:
    """What each job runs on, how long it takes, what it makes of its accelerators."""
    assert plan.training is not None
    lines: list[str] = []
    several = len(plan.training.jobs) > 1
    for job in plan.training.jobs:
        name = [job.name] if several else []
        lay = job.layout
        how = [
            f"{counted(job.accelerators_used, 'accelerator')} of {job.accelerator} in {job.precision}",
            layout_words(lay),
            f"micro-batch {lay.micro_batch}, ZeRO {lay.zero_stage}, recompute {lay.recompute}",
            *([_METHODS[job.method]] if job.method != "one_site" else []),
        ]
        lines += wrapped("Train", [*name, *how], width)
        lines += _days(job, several=several, width=width)
    return lines


def _days(job: TrainedJob, *, several: bool, width: int) -> list[str]:
    low, high = job.days_band
    when = f"day {job.start_day:.0f} to {job.end_day:.0f}" if several else f"{significant(job.days)} days"
    first = [
        f"{when}, band {low:.0f} .. {high:.0f} days (80 %, model error)",
        f"step {significant(job.step_s)} s x {job.production_factor:g} / goodput {percent(job.goodput_fraction)}",
    ]
    second = [
        # Two peaks: a step is held against its own format, a run against the one that published figures use.
        f"MFU of a step {percent(job.mfu_fraction)} of the {job.precision} peak",
        f"of the whole run {percent(job.run_mfu_fraction)} of the 16-bit peak (6ND)",
        f"{job.run_tflops_per_accelerator:.0f} TFLOP/s",
        f"{significant(job.memory_gib)} GiB",
    ]
    if job.wan_gbit_per_s:
        second.append(f"{significant(job.wan_gbit_per_s)} Gb/s between sites")
    return [*wrapped("", first, width), *wrapped("", second, width)]


def site_lines(plan: Plan, width: int) -> list[str]:
    """What stands where, when there is more than one place."""
    assert plan.training is not None
    sites = plan.training.sites
    if len(sites) < 2:
        return []
    parts = [
        f"{one.site}: {counted(one.accelerators, 'accelerator')}"
        + (f", {significant(one.power_kw / 1e3)} MW" if one.power_kw else "")
        for one in sites
    ]
    return wrapped("Sites", parts, width)


def cost_lines(plan: Plan, width: int) -> list[str]:
    """The whole cost, by accelerator-hour and by component."""
    training, bill = plan.training, plan.bill
    assert training is not None
    hours = sum(job.accelerator_hours for job in training.jobs)
    charge = "for the jobs' days" if training.charge == "job" else "for the whole horizon"
    parts = [f"{usd(training.usd)} in all"]
    if len(training.jobs) > 1:
        parts += [f"{job.name} {usd(job.usd)}" for job in training.jobs]
    parts.append(f"{usd(training.usd / hours)} per accelerator-hour ({significant(hours / 1e6)} million)")
    lines = wrapped("Cost", parts, width)
    more = [f"bought servers charged {charge}"] if bill.capital_usd else []
    more += [f"{usd(bill.capital_usd)} at start"] if bill.capital_usd else []
    more += [f"{significant(plan.power_kw / 1e3)} MW"] if plan.power_kw else []
    more += [f"{significant(training.energy_mwh / 1e3)} GWh"] if training.energy_mwh else []
    lines += wrapped("", more, width) if more else []
    total = bill.usd_per_year
    shares = sorted(bill.usd_per_year_by_component.items(), key=lambda item: -item[1])
    shown = [f"{name} {percent(value / total)}" for name, value in shares[:5] if total]
    if len(shares) > 5:
        shown.append(f"other {percent(sum(value for _, value in shares[5:]) / total)}")
    return [*lines, *(wrapped("", shown, width) if shown else [])]


def run_lines(plan: Plan, width: int) -> list[str]:
    """Jobs, sites and cost."""
    return [*job_lines(plan, width), *site_lines(plan, width), *cost_lines(plan, width)]


def next_best_lines(plan: Plan, width: int) -> list[str]:
    """The cheapest plans without something this one uses."""
    lines: list[str] = []
    for number, row in enumerate(plan.runners_up[:2]):
        if row.extra_fraction is None:
            parts = [f"without {row.without}: {row.reason}"]
        else:
            parts = [f"{signed_percent(row.extra_fraction)} without {row.without}: {row.summary}"]
            parts += [row.reason] if number == 0 else []
        lines += wrapped("Next best" if number == 0 else "", parts, width, 12)
    return lines


def footer_lines(plan: Plan, width: int) -> list[str]:
    """What the answer rests on, and its messages."""
    assert plan.training is not None
    parts = [
        f"{counted(len(plan.defaults), 'input')} defaulted",
        f"{percent(plan.bill.assumed_fraction)} of cost assumed",
    ]
    if plan.bill.oldest_price:
        parts.append(f"oldest price {plan.bill.oldest_price}")
    evidence = ", ".join(sorted({job.evidence for job in plan.training.jobs}))
    parts.append(f"evidence behind the step: {evidence}")
    lines = wrapped("Trust", parts, width)
    for message in plan.messages[:3]:
        lines += wrapped("Note", [message], width)
    return lines
