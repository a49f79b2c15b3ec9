"""Rules between fields of an instance that trains, and of the two kinds of work (``optimizer.instance.rules``)."""

from collections.abc import Iterator
from typing import Final

from optimizer.instance.rule import Broken, Inner, Rule, Values, given


def _kind(values: Values) -> str:
    return str((values.get("workload") or {}).get("kind") or "serving")


def _targets_of_a_kind(values: Values) -> Iterator[Broken]:
    """Targets of the other kind of work would be left unread."""
    latency = ("tpot_ms", "ttft_ms", "latency_ms")
    accuracy = ("accuracy_floor_fraction", "accuracy_floor_score", "accuracy_baseline_score")
    serving: tuple[str, ...] = (*latency, *accuracy, "weights_gib_per_accelerator")
    training: tuple[str, ...] = ("deadline_days", "mfu_floor_fraction", "scale_out_fraction")
    kind, targets = _kind(values), values.get("targets") or {}
    for name in training if kind == "serving" else serving:
        if targets.get(name) is not None:
            other = "training" if kind == "serving" else "serving"
            yield Broken(("targets", name), f"{name} beside a workload of kind {kind}", f"is a target of {other}")


def _sites_of_a_kind(values: Values) -> Iterator[Broken]:
    if _kind(values) == "serving":
        for name in ("sites", "wan_links"):
            if values.get(name):
                yield Broken((name,), f"{name} beside a workload of kind serving", "is for training; write one site")
    elif values.get("sites"):
        own = given(values.get("site") or {}, "power_kw", "racks", "rack_kw", "electricity_usd_per_kwh")
        if own:
            yield Broken(("site", own[0]), "site beside sites", "must be one of the two forms")


def _budgets_of_a_kind(values: Values) -> Iterator[Broken]:
    other = {"serving": ("budget_usd", "budget_usd_per_year"), "training": ("budget_usd_per_year", "budget_usd")}
    wrong, right = other.get(_kind(values), ("", ""))
    if wrong and (values.get("economics") or {}).get(wrong) is not None:
        yield Broken(("economics", wrong), f"{wrong} beside a workload of kind {_kind(values)}", f"write {right}")


def _caps_not_held(values: Values) -> Iterator[Broken]:
    """Yearly caps mean nothing to a run of months."""
    if _kind(values) == "training":
        places: list[tuple[Inner, Values]] = [(("site",), values.get("site") or {})]
        places += [(("sites", index), one) for index, one in enumerate(values.get("sites") or ())]
        for where, site in places:
            for name in given(site, "carbon_tonnes_per_year", "water_m3_per_year"):
                yield Broken((*where, name), f"{name} beside a workload of kind training", "is for serving")


def _unread(values: Values) -> Iterator[Broken]:
    """What a plan for training does not read would be left out in silence."""
    if _kind(values) == "training":
        choices = values.get("choices") or {}
        if values.get("inventory"):
            yield Broken(("inventory",), "inventory beside a workload of kind training", "is for serving")
        if "spot" in (choices.get("sourcing") or ()):
            yield Broken(("choices", "sourcing"), "spot beside a workload of kind training", "is for serving")
        if any(cap != 1.0 for cap in choices.get("power_cap_fractions") or ()):
            field, allowed = "power_cap_fractions", "is for serving: what a cap costs a training step is not modelled"
            yield Broken(("choices", field), "a power cap beside a workload of kind training", allowed)
        if choices.get("provider_supply"):
            yield Broken(
                ("choices", "provider_supply"), "provider_supply beside a workload of kind training", "is for serving"
            )


def _site_names(values: Values) -> Iterator[Broken]:
    seen: dict[str, int] = {}
    for index, one in enumerate(values.get("sites") or ()):
        name = one.get("name")
        if name in seen:
            yield Broken(("sites", index, "name"), f"the name of sites[{seen[name]}]", "must differ")
        seen[name] = index
    for index, link in enumerate(values.get("wan_links") or ()):
        ends = tuple(link.get("between") or ())
        for place, end in enumerate(ends):
            if end not in seen:
                known = ", ".join(map(str, seen)) or "none is given"
                yield Broken(("wan_links", index, "between", place), f'"{end}"', f"must be one of sites: {known}")
        if len(ends) == 2 and ends[0] == ends[1]:
            yield Broken(("wan_links", index, "between"), "one site twice", "must be two sites")


def _training_jobs(values: Values) -> Iterator[Broken]:
    """Every job, with what it takes from the workload, has one size and one amount; what all take is told once."""
    yield from dict.fromkeys(_of_each_job(values))


def _of_each_job(values: Values) -> Iterator[Broken]:
    jobs: tuple[Values, ...] = tuple(values.get("jobs") or ({},))
    for index, one in enumerate(jobs):
        where: Inner = ("jobs", index) if values.get("jobs") else ()
        size = given(one, "model", "parameters_b", "active_parameters_b")
        size_of = one if size else values
        size = size or given(values, "model", "parameters_b", "active_parameters_b")
        if ("model" in size) == ("parameters_b" in size):
            found = " and ".join(size) or "neither model nor parameters_b"
            yield Broken(where, found, "must have exactly one of model and parameters_b")
        active, total = size_of.get("active_parameters_b"), size_of.get("parameters_b")
        if active is not None and total is not None and active > total:
            allowed = f"must be <= {total:g}, parameters_b of which it is a part"
            yield Broken(
                (*where, "active_parameters_b") if size_of is one else ("active_parameters_b",), f"{active:g}", allowed
            )
        elif active is not None and total is None:
            allowed = "must stand beside parameters_b: a model has its own"
            yield Broken(
                (*where, "active_parameters_b") if size_of is one else ("active_parameters_b",), f"{active:g}", allowed
            )
        amount = given(one, "tokens", "flop") or given(values, "tokens", "flop")
        if len(amount) != 1:
            yield Broken(
                where, " and ".join(amount) or "neither tokens nor flop", "must have exactly one of tokens and flop"
            )


def _job_names(values: Values) -> Iterator[Broken]:
    seen: dict[str, int] = {}
    for index, one in enumerate(values.get("jobs") or ()):
        if one.get("name") in seen:
            yield Broken(("jobs", index, "name"), f"the name of jobs[{seen[one['name']]}]", "must differ")
        elif one.get("name") is not None:
            seen[one["name"]] = index


def _job_windows(values: Values) -> Iterator[Broken]:
    """A job has room between its start and its deadline."""
    common = (values.get("targets") or {}).get("deadline_days")
    for index, one in enumerate((values.get("workload") or {}).get("jobs") or ()):
        start, own = one.get("earliest_start_day") or 0, one.get("deadline_days")
        end = common if own is None else own
        if end is not None and start >= end:
            where: Inner = ("workload", "jobs", index, "earliest_start_day")
            yield Broken(where, f"{start:g}", f"must be < {end:g}, the day by which the job must be done")


OF_TRAINING: Final = (
    Rule(
        "E-WORKLOAD-700",
        ("jobs", "model", "parameters_b", "active_parameters_b", "tokens", "flop"),
        _training_jobs,
    ),
    Rule("E-WORKLOAD-008", ("jobs",), _job_names),
)
OF_INSTANCE: Final = (
    Rule("E-TARGETS-700", ("workload", "targets"), _targets_of_a_kind),
    Rule("E-SITE-700", ("workload", "site", "sites", "wan_links"), _sites_of_a_kind),
    Rule("E-SITE-700", ("workload", "site", "sites"), _caps_not_held),
    Rule("E-ECONOMICS-700", ("workload", "economics"), _budgets_of_a_kind),
    Rule("E-WORKLOAD-702", ("workload", "choices", "inventory"), _unread),
    Rule("E-SITE-701", ("sites", "wan_links"), _site_names),
    Rule("E-WORKLOAD-701", ("workload", "targets"), _job_windows),
)
