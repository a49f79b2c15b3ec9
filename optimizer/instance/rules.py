"""Rules between fields: what no single field's type or range can say.

Each rule is written once, over plain values, and used twice: by the reader, which has the place of every value in the
file at hand and must not load pydantic to report a fault, and by the pydantic shapes, so that an instance built in
Python obeys the same rules.
"""

from collections.abc import Iterator, Mapping
from itertools import pairwise
from types import MappingProxyType
from typing import Any, Final

from optimizer.instance.rule import Broken as Broken
from optimizer.instance.rule import Inner, Values, given
from optimizer.instance.rule import Rule as Rule
from optimizer.instance.training_rules import OF_INSTANCE, OF_TRAINING
from optimizer.instance.weather_rules import BINNED, HOURLY, one_weather, sound_weather

#: Profiles are given by the hour of a day or of a week.
PROFILE_LENGTHS: Final = (24, 168)


def _demand_unit(values: Values) -> Iterator[Broken]:
    units = ("output_tokens_per_s", "requests_per_s", "concurrent_users")
    named = given(values, *units)
    if len(named) != 1:
        where: Inner = (named[1],) if named else ()
        yield Broken(where, " and ".join(named) or "no demand", f"must be exactly one of {', '.join(units)}")


def _think_time(values: Values) -> Iterator[Broken]:
    if values.get("think_time_s") and values.get("concurrent_users") is None:
        yield Broken(("think_time_s",), "think_time_s without concurrent_users", "must be both or neither")


def _one_load(values: Values) -> Iterator[Broken]:
    if len(given(values, "mean_fraction", "hourly_fractions")) == 2:
        yield Broken(("hourly_fractions",), "hourly_fractions beside mean_fraction", "must be one of them")


def _profile_length(values: Values) -> Iterator[Broken]:
    hours = values.get("hourly_fractions")
    if hours is not None and len(hours) not in PROFILE_LENGTHS:
        yield Broken(("hourly_fractions",), f"{len(hours)} values", "must be 24 (a day) or 168 (a week)")


def _profile_carries(values: Values) -> Iterator[Broken]:
    hours = values.get("hourly_fractions")
    if hours and max(hours) <= 0:
        yield Broken(("hourly_fractions",), "no hour with load", "must have at least one hour above 0")


def _one_energy_price(values: Values) -> Iterator[Broken]:
    named = given(values, "energy_usd_per_kwh", "hourly_usd_per_kwh")
    if len(named) != 1:
        where: Inner = (named[1],) if named else ()
        allowed = "must be exactly one of energy_usd_per_kwh, hourly_usd_per_kwh"
        yield Broken(where, " and ".join(named) or "no energy price", allowed)


def _tariff_length(values: Values) -> Iterator[Broken]:
    hours = values.get("hourly_usd_per_kwh")
    if hours is not None and len(hours) not in PROFILE_LENGTHS:
        yield Broken(("hourly_usd_per_kwh",), f"{len(hours)} values", "must be 24 (a day) or 168 (a week)")


def _periods_in_place(values: Values) -> Iterator[Broken]:
    if values.get("periods") and values.get("hourly_usd_per_kwh") is not None:
        yield Broken(("periods",), "periods beside hourly_usd_per_kwh", "must go with energy_usd_per_kwh")


def _one_electricity_price(values: Values) -> Iterator[Broken]:
    if len(given(values, "electricity_usd_per_kwh", "tariff")) == 2:
        yield Broken(("tariff",), "tariff beside electricity_usd_per_kwh", "must be one of them")


def _priced_management(values: Values) -> Iterator[Broken]:
    names = ("servers_per_management_server", "management_server_usd")
    named = given(values, *names)
    if len(named) == 1:
        other = names[1] if named[0] == names[0] else names[0]
        yield Broken((named[0],), f"{named[0]} without {other}", "must be both or neither")


def _one_class_or_several(values: Values) -> Iterator[Broken]:
    single = given(values, "request", "demand")
    if values.get("classes"):
        if single:
            yield Broken((single[0],), f"{' and '.join(single)} beside classes", "must be one of the two forms")
    elif len(single) < 2:
        missing = " and ".join(name for name in ("request", "demand") if name not in single)
        yield Broken((), f"neither {missing} nor classes", "must have request and demand, or classes")


def _class_names(values: Values) -> Iterator[Broken]:
    seen: dict[str, int] = {}
    for index, one in enumerate(values.get("classes") or ()):
        if one.get("name") in seen:
            yield Broken(("classes", index, "name"), f"the name of classes[{seen[one['name']]}]", "must differ")
        elif one.get("name") is not None:
            seen[one["name"]] = index


def _longest_context(values: Values) -> Iterator[Broken]:
    limit = values.get("max_context_tokens")
    shapes = [one.get("request") for one in values.get("classes") or ()] or [values.get("request")]
    lengths = [one["input_tokens"] + one["output_tokens"] for one in shapes if one]
    if limit is not None and lengths and limit < max(lengths):
        allowed = f"must be >= {max(lengths)} tokens, input and output of a mean request"
        yield Broken(("max_context_tokens",), str(limit), allowed)


def _absolute_floor(values: Values) -> Iterator[Broken]:
    named = given(values, "accuracy_floor_score", "accuracy_baseline_score")
    if len(named) == 1:
        other = "accuracy_baseline_score" if named[0] == "accuracy_floor_score" else "accuracy_floor_score"
        yield Broken((named[0],), f"{named[0]} without {other}", "must be both or neither")


def _one_floor(values: Values) -> Iterator[Broken]:
    if len(given(values, "accuracy_floor_fraction", "accuracy_floor_score")) == 2:
        found = "accuracy_floor_score beside accuracy_floor_fraction"
        yield Broken(("accuracy_floor_score",), found, "must be one of them")


def _floor_below_baseline(values: Values) -> Iterator[Broken]:
    floor, baseline = values.get("accuracy_floor_score"), values.get("accuracy_baseline_score")
    if floor is not None and baseline is not None and floor > baseline:
        allowed = f"must be <= {baseline:g} points, accuracy_baseline_score: quantizing is credited with no gain"
        yield Broken(("accuracy_floor_score",), f"{floor:g}", allowed)


def _first_token(values: Values) -> Iterator[Broken]:
    ttft, latency = values.get("ttft_ms"), values.get("latency_ms")
    if ttft is not None and latency is not None and ttft > latency:
        yield Broken(("ttft_ms",), f"{ttft:g}", f"must be <= {latency:g} ms, latency_ms of the whole answer")


def _weights_within_memory(values: Values) -> Iterator[Broken]:
    weights, memory = values.get("weights_gib_per_accelerator"), values.get("vram_gib_per_accelerator")
    if weights is not None and memory is not None and weights > memory:
        allowed = f"must be <= {memory:g} GiB, vram_gib_per_accelerator: weights are a part of it"
        yield Broken(("weights_gib_per_accelerator",), f"{weights:g}", allowed)


def _discounts_rise(values: Values) -> Iterator[Broken]:
    return _steps_rise(values, "discounts", "from_servers", "servers")


def _network_discounts_rise(values: Values) -> Iterator[Broken]:
    return _steps_rise(values, "network_discounts", "from_accelerators", "accelerators")


def _plant_discounts_rise(values: Values) -> Iterator[Broken]:
    return _steps_rise(values, "discounts", "from_kw", "kW")


def _steps_rise(values: Values, name: str, start: str, unit: str) -> Iterator[Broken]:
    steps = [(one[start], one["discount_fraction"]) for one in values.get(name) or ()]
    for index, ((count, share), (next_count, next_share)) in enumerate(pairwise(steps), 1):
        if next_count <= count:
            allowed = f"must be > {count} {unit}, the step before"
            yield Broken((name, index, start), str(next_count), allowed)
        if next_share < share:
            allowed = f"must be >= {share:g}, the step before"
            yield Broken((name, index, "discount_fraction"), f"{next_share:g}", allowed)


def _spot_availability(values: Values) -> Iterator[Broken]:
    if "spot" in (values.get("sourcing") or ()) and values.get("spot_availability_fraction") is None:
        allowed = "must come with spot_availability_fraction: how much of the paid time spot servers serve"
        yield Broken(("sourcing",), "spot without its availability", allowed)


def _inventory_once(values: Values) -> Iterator[Broken]:
    seen: dict[tuple[str, str], int] = {}
    for index, one in enumerate(values.get("inventory") or ()):
        key = (str(one.get("accelerator")), str(one.get("cooling")))
        if key in seen:
            found = f"the accelerator and cooling of inventory[{seen[key]}]"
            yield Broken(("inventory", index, "accelerator"), found, "must differ in one of them: add the counts up")
        else:
            seen[key] = index


def _row_ids(values: Values) -> Iterator[Broken]:
    for table in ("accelerators", "cooling"):
        seen: dict[str, int] = {}
        for index, row in enumerate(values.get(table) or ()):
            if row["id"] in seen:
                yield Broken((table, index, "id"), f"the id of {table}[{seen[row['id']]}]", "must differ")
            else:
                seen[row["id"]] = index


def _class_latency(values: Values) -> Iterator[Broken]:
    """A class takes what it leaves out from ``targets``; the two together must make sense too."""
    common = values.get("targets") or {}
    for index, one in enumerate((values.get("workload") or {}).get("classes") or ()):
        own = {name: value for name, value in (one.get("targets") or {}).items() if value is not None}
        if {"ttft_ms", "latency_ms"} <= set(own) or not own:
            continue
        merged = {name: common.get(name) for name in ("ttft_ms", "latency_ms")} | own
        for broken in _first_token(merged):
            name = "ttft_ms" if "ttft_ms" in own else "latency_ms"
            where: Inner = ("workload", "classes", index, "targets", name)
            yield Broken(where, f"ttft_ms {merged['ttft_ms']:g} ms for this class", broken.allowed)


#: Parameters of each distribution: those it needs, those it may have.
DISTRIBUTIONS: Final[Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]] = MappingProxyType(
    {
        "uniform": (("low", "high"), ()),
        "triangular": (("low", "mode", "high"), ()),
        "normal": (("mean", "standard_deviation"), ("low", "high")),
        "lognormal": (("median", "log_standard_deviation"), ("low", "high")),
        "discrete": (("values", "probabilities"), ()),
    }
)
_PARAMETERS: Final = tuple(dict.fromkeys(name for needed, may in DISTRIBUTIONS.values() for name in (*needed, *may)))


def _parameters(values: Values) -> Iterator[Broken]:
    kind = str(values.get("distribution"))
    if kind not in DISTRIBUTIONS:
        return
    needed, may = DISTRIBUTIONS[kind]
    for name in needed:
        if values.get(name) is None:
            yield Broken((), f"{kind} without {name}", f"must have {', '.join(needed)}")
    for name in given(values, *_PARAMETERS):
        if name not in (*needed, *may):
            yield Broken((name,), f"{name} beside {kind}", f"must be among {', '.join((*needed, *may))}")


def _spread(values: Values) -> Iterator[Broken]:
    low, mode, high = (values.get(name) for name in ("low", "mode", "high"))
    if low is not None and high is not None and low >= high:
        yield Broken(("high",), f"{high:g}", f"must be > {low:g}, low")
    elif mode is not None and ((low is not None and mode < low) or (high is not None and mode > high)):
        yield Broken(("mode",), f"{mode:g}", f"must be between low and high, {low:g} and {high:g}")


def _probabilities(values: Values) -> Iterator[Broken]:
    points, weights = values.get("values"), values.get("probabilities")
    if points is None or weights is None:
        return
    if len(points) != len(weights):
        yield Broken(("probabilities",), f"{len(weights)} of them", f"must be {len(points)}, one for each value")
    elif abs(sum(weights) - 1.0) > 1e-6:
        yield Broken(("probabilities",), f"a sum of {sum(weights):g}", "must sum to 1")


def _uncertain_once(values: Values) -> Iterator[Broken]:
    seen: dict[str, int] = {}
    for index, one in enumerate(values.get("fields") or ()):
        if one["field"] in seen:
            yield Broken(("fields", index, "field"), f"the field of fields[{seen[one['field']]}]", "must be named once")
        else:
            seen[one["field"]] = index


def _correlated(values: Values) -> Iterator[Broken]:
    names = [one["field"] for one in values.get("fields") or ()]
    seen: set[frozenset[str]] = set()
    sound = True
    for index, one in enumerate(values.get("correlations") or ()):
        for key in ("first", "second"):
            if one[key] not in names:
                sound = False
                yield Broken(("correlations", index, key), f'"{one[key]}"', "must be one of the uncertain fields")
        pair = frozenset((one["first"], one["second"]))
        if len(pair) == 1 or pair in seen:
            sound = False
            found = "a field with itself" if len(pair) == 1 else "a pair that is given before"
            yield Broken(("correlations", index), found, "must be two fields, each pair once")
        seen.add(pair)
    if sound and len(names) == len(set(names)) and not _positive_definite(names, values.get("correlations") or ()):
        allowed = "must be possible together: their matrix must be positive definite. Move them towards 0"
        yield Broken(("correlations",), "correlations that contradict each other", allowed)


def _positive_definite(names: list[str], correlations: Any) -> bool:
    """Whether a matrix of correlations has a Cholesky factor; in plain Python, since a file is read without numpy."""
    place = {name: index for index, name in enumerate(names)}
    size = len(names)
    matrix = [[1.0 if row == column else 0.0 for column in range(size)] for row in range(size)]
    for one in correlations:
        row, column = place[one["first"]], place[one["second"]]
        matrix[row][column] = matrix[column][row] = one["rank_correlation"]
    factor = [[0.0] * size for _ in range(size)]
    for row in range(size):
        for column in range(row + 1):
            left = matrix[row][column] - sum(factor[row][k] * factor[column][k] for k in range(column))
            if row == column:
                if left <= 1e-9:
                    return False
                factor[row][row] = left**0.5
            else:
                factor[row][column] = left / factor[column][column]
    return True


#: Rules by shape, in the order in which they are told.
RULES: Final[Mapping[str, tuple[Rule, ...]]] = MappingProxyType(
    {
        "Demand": (
            Rule("E-WORKLOAD-020", ("output_tokens_per_s", "requests_per_s", "concurrent_users"), _demand_unit),
            Rule("E-WORKLOAD-021", ("think_time_s", "concurrent_users"), _think_time),
        ),
        "Load": (
            Rule("E-WORKLOAD-022", ("mean_fraction", "hourly_fractions"), _one_load),
            Rule("E-WORKLOAD-023", ("hourly_fractions",), _profile_length),
            Rule("E-WORKLOAD-024", ("hourly_fractions",), _profile_carries),
        ),
        "ServingWorkload": (
            Rule("E-WORKLOAD-025", ("request", "demand", "classes"), _one_class_or_several),
            Rule("E-WORKLOAD-008", ("classes",), _class_names),
            Rule("E-WORKLOAD-026", ("max_context_tokens", "request", "classes"), _longest_context),
        ),
        "ClassTargets": (Rule("E-TARGETS-023", ("ttft_ms", "latency_ms"), _first_token),),
        "Targets": (
            Rule("E-TARGETS-020", ("accuracy_floor_score", "accuracy_baseline_score"), _absolute_floor),
            Rule("E-TARGETS-021", ("accuracy_floor_fraction", "accuracy_floor_score"), _one_floor),
            Rule("E-TARGETS-022", ("accuracy_floor_score", "accuracy_baseline_score"), _floor_below_baseline),
            Rule("E-TARGETS-023", ("ttft_ms", "latency_ms"), _first_token),
            Rule("E-TARGETS-024", ("weights_gib_per_accelerator", "vram_gib_per_accelerator"), _weights_within_memory),
        ),
        "Tariff": (
            Rule("E-SITE-100", ("energy_usd_per_kwh", "hourly_usd_per_kwh"), _one_energy_price),
            Rule("E-SITE-101", ("hourly_usd_per_kwh",), _tariff_length),
            Rule("E-SITE-102", ("periods", "hourly_usd_per_kwh"), _periods_in_place),
        ),
        "Services": (
            Rule("E-ECONOMICS-100", ("servers_per_management_server", "management_server_usd"), _priced_management),
        ),
        "ClimateBins": (
            Rule("E-SITE-110", (*BINNED, *HOURLY), one_weather),
            Rule("E-SITE-111", (*BINNED, *HOURLY), sound_weather),
        ),
        "Site": (Rule("E-SITE-103", ("electricity_usd_per_kwh", "tariff"), _one_electricity_price),),
        "NamedSite": (Rule("E-SITE-103", ("electricity_usd_per_kwh", "tariff"), _one_electricity_price),),
        "Choices": (Rule("E-CHOICES-200", ("sourcing", "spot_availability_fraction"), _spot_availability),),
        "AcceleratorPrices": (Rule("E-ECONOMICS-020", ("discounts",), _discounts_rise),),
        "CoolingPrices": (Rule("E-ECONOMICS-020", ("discounts",), _plant_discounts_rise),),
        "Economics": (Rule("E-ECONOMICS-020", ("network_discounts",), _network_discounts_rise),),
        "OwnRows": (Rule("E-CATALOG-008", ("accelerators", "cooling"), _row_ids),),
        "UncertainField": (
            Rule("E-UNCERTAINTY-401", ("distribution", *_PARAMETERS), _parameters),
            Rule("E-UNCERTAINTY-402", ("low", "mode", "high"), _spread),
            Rule("E-UNCERTAINTY-403", ("values", "probabilities"), _probabilities),
        ),
        "Uncertainty": (
            Rule("E-UNCERTAINTY-404", ("fields",), _uncertain_once),
            Rule("E-UNCERTAINTY-405", ("fields", "correlations"), _correlated),
        ),
        "TrainingWorkload": OF_TRAINING,
        "Instance": (
            Rule("E-TARGETS-023", ("workload", "targets"), _class_latency),
            Rule("E-INVENTORY-200", ("inventory",), _inventory_once),
            *OF_INSTANCE,
        ),
    }
)


def broken_rules(shape: str, values: Values) -> Iterator[tuple[Rule, Broken]]:
    """Every rule of a shape that sound values break."""
    for rule in RULES.get(shape, ()):
        for broken in rule.check(values):
            yield rule, broken
