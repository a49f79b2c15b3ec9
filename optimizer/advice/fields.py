"""Fields of an instance that can be moved until a plan exists: limits, margins, demand, and lists of choices."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import get_args

from optimizer.catalog import Catalog
from optimizer.instance.choices import RecoveryStepName, Sourcing
from optimizer.instance.field_paths import document_of, find_field, with_values
from optimizer.instance.model import Instance

#: What a change sets a field to: a number, or the members of a list.
Value = float | tuple[str | int, ...]
#: Changes by path.
Changes = dict[str, Value]

#: A limit of money, memory, power or time that is so many times as wide limits nothing.
_FAR = 1e4
#: Demand of so small a share of what is asked binds nothing.
_NO_DEMAND = 1e-9
#: Degrees that engines run, for choices that may be wider.
_TENSOR = (1, 2, 4, 8, 16, 32, 64)
_PIPELINE = (1, 2, 3, 4, 6, 8, 12, 16)

_WITHOUT_SPOT = tuple(way for way in get_args(Sourcing) if way != "spot")


@dataclass(frozen=True, slots=True)
class Movable:
    """A field with a number that limits something.

    Attributes
    ----------
    limit: row of ``optimizer.limits`` that it sets; empty where it bears on several.
    now, loosest: its value, and one at which it limits nothing. More is looser where ``loosest > now``.
    is_whole: whether it counts something. is_stated: whether the planner wrote it.
    is_margin: whether it is a margin of safety rather than a limit. is_demand: whether it is the work itself.
    """

    path: str
    limit: str
    unit: str
    now: float
    loosest: float
    is_whole: bool = False
    is_stated: bool = True
    is_margin: bool = False
    is_demand: bool = False

    @property
    def is_up(self) -> bool:
        """Whether a larger value is looser."""
        return self.loosest > self.now


@dataclass(frozen=True, slots=True)
class Widened:
    """A list of choices that may be longer: its members now, and all there are."""

    path: str
    now: tuple[str | int, ...]
    widest: tuple[str | int, ...]


def changed(instance: Instance, changes: Changes) -> Instance:
    """A valid instance with changes.

    Raises
    ------
    InputError: the instance would break a rule between its fields.
    """
    if not changes:
        return instance
    values = {}
    for path, value in changes.items():
        field = find_field(instance, path)
        number = round(value) if isinstance(value, float) and field.is_whole else value
        values[field] = list(number) if isinstance(number, tuple) else number
    return with_values(instance, values)


def movable(instance: Instance) -> tuple[Movable, ...]:
    """Every number that limits something, in the order in which it is told: limits, caps, margins, demand."""
    stated = _stated(document_of(instance))
    return tuple(
        one
        if one.path in stated
        else Movable(
            one.path,
            one.limit,
            one.unit,
            one.now,
            one.loosest,
            one.is_whole,
            False,
            one.is_margin,
            one.is_demand,
        )
        for one in (*_targets(instance), *_classes(instance), *_caps(instance), *_margins(instance), *_demand(instance))
    )


def _stated(document: object, prefix: str = "") -> set[str]:
    """Paths that the planner wrote."""
    if isinstance(document, dict):
        return {
            path
            for key, inner in document.items()
            for path in _stated(inner, f"{prefix}.{key}" if prefix else str(key))
        }
    if isinstance(document, list) and document and isinstance(document[0], dict):
        return {path for index, inner in enumerate(document) for path in _stated(inner, f"{prefix}[{index}]")}
    return {prefix}


def _targets(instance: Instance) -> Iterator[Movable]:
    targets = instance.targets
    if targets.vram_fraction < 1.0:
        yield Movable("targets.vram_fraction", "vram_gib", "fraction", targets.vram_fraction, 1.0)
    vram, weights = targets.vram_gib_per_accelerator, targets.weights_gib_per_accelerator
    if vram is not None:
        yield Movable("targets.vram_gib_per_accelerator", "vram_gib_per_accelerator", "GiB", vram, vram * _FAR)
    if weights is not None and (vram is None or weights < vram):
        # Weights are a part of what a cap on all memory bounds.
        yield Movable(
            "targets.weights_gib_per_accelerator",
            "weights_gib_per_accelerator",
            "GiB",
            weights,
            weights * _FAR if vram is None else vram,
        )
    yield from _latencies("targets", targets.tpot_ms, targets.ttft_ms, targets.latency_ms, targets.latency_ms)
    if targets.accuracy_floor_score is not None:
        score = targets.accuracy_floor_score
        yield Movable("targets.accuracy_floor_score", "accuracy", "points", score, score * 0.01)
    else:
        yield Movable("targets.accuracy_floor_fraction", "accuracy", "fraction", targets.accuracy_floor(), 0.01)
    if targets.nvlink_fraction < 1.0:
        yield Movable("targets.nvlink_fraction", "nvlink_gb_s", "fraction", targets.nvlink_fraction, 1.0)
    if targets.kv_link_fraction < 1.0 and "disaggregated" in instance.choices.serving_roles:
        yield Movable("targets.kv_link_fraction", "kv_link_gb_s", "fraction", targets.kv_link_fraction, 1.0)
    if targets.nvlink_gb_s is not None:
        yield Movable("targets.nvlink_gb_s", "nvlink_cap_gb_s", "GB/s", targets.nvlink_gb_s, targets.nvlink_gb_s * _FAR)


def _latencies(
    where: str, tpot: float | None, ttft: float | None, latency: float | None, whole: float | None
) -> Iterator[Movable]:
    """Latencies of ``targets`` or of a class; ``whole`` bounds the first token, which is a part of the answer."""
    if tpot is not None:
        yield Movable(f"{where}.tpot_ms", "tpot_ms", "ms", tpot, max(tpot, 1.0) * _FAR)
    if ttft is not None and (whole is None or ttft < whole):
        loosest = max(ttft, 1.0) * _FAR
        yield Movable(f"{where}.ttft_ms", "ttft_ms", "ms", ttft, loosest if whole is None else min(whole, loosest))
    if latency is not None:
        yield Movable(f"{where}.latency_ms", "latency_ms", "ms", latency, max(latency, 1.0) * _FAR)


def _classes(instance: Instance) -> Iterator[Movable]:
    for index, one in enumerate(instance.workload.classes):
        own = one.targets
        whole = own.latency_ms if own.latency_ms is not None else instance.targets.latency_ms
        where = f"workload.classes[{index}].targets"
        yield from _latencies(where, own.tpot_ms, own.ttft_ms, own.latency_ms, whole)


def _caps(instance: Instance) -> Iterator[Movable]:
    site, economics, choices = instance.site, instance.economics, instance.choices
    if site.power_kw is not None:
        yield Movable("site.power_kw", "power_kw", "kW", site.power_kw, site.power_kw * _FAR)
    if site.racks is not None:
        yield Movable("site.racks", "racks", "racks", float(site.racks), max(site.racks, 1) * _FAR, is_whole=True)
    if site.floor_m2 is not None:
        yield Movable("site.floor_m2", "floor_m2", "m2", site.floor_m2, max(site.floor_m2, 1.0) * _FAR)
    if site.rack_kw is not None:
        yield Movable("site.rack_kw", "rack_kw", "kW", site.rack_kw, site.rack_kw * _FAR)
    if site.rack_units < 100:
        yield Movable("site.rack_units", "rack_kw", "U", float(site.rack_units), 100.0, is_whole=True)
    for name, unit in (("carbon_tonnes_per_year", "t/year"), ("water_m3_per_year", "m3/year")):
        most = getattr(site, name)
        if most is not None:
            yield Movable(f"site.{name}", name, unit, most, max(most, 1.0) * _FAR * 100.0)
    for name, unit in (("budget_capex_usd", "USD"), ("budget_usd_per_year", "USD/year")):
        usd = getattr(economics, name)
        if usd is not None:
            yield Movable(f"economics.{name}", name, unit, usd, usd * _FAR * 100.0)
    for key, count in sorted(choices.supply.items()):
        yield Movable(f"choices.supply.{key}", "supply", "accelerators", float(count), 1e7, is_whole=True)
    types = choices.max_accelerator_types
    if types is not None:
        yield Movable("choices.max_accelerator_types", "accelerator_types", "types", float(types), 64.0, is_whole=True)
    in_flight = choices.max_concurrency
    if in_flight < 65_536:
        yield Movable("choices.max_concurrency", "", "requests", float(in_flight), 65_536.0, is_whole=True)


def _margins(instance: Instance) -> Iterator[Movable]:
    targets = instance.targets
    if targets.confidence > 0.5:
        yield Movable("targets.confidence", "", "probability", targets.confidence, 0.5, is_margin=True)
    if targets.accuracy_confidence > 0.5:
        at = targets.accuracy_confidence
        yield Movable("targets.accuracy_confidence", "accuracy", "probability", at, 0.5, is_margin=True)
    if targets.peak_utilization_fraction < 1.0:
        yield Movable(
            "targets.peak_utilization_fraction",
            "throughput_requests_per_s",
            "fraction",
            targets.peak_utilization_fraction,
            1.0,
            is_margin=True,
        )
    if targets.spare_fraction > 0.0:
        yield Movable(
            "targets.spare_fraction", "spare_servers", "fraction", targets.spare_fraction, 0.0, is_margin=True
        )
    if targets.availability_fraction is not None:
        now = targets.availability_fraction
        yield Movable("targets.availability_fraction", "spare_servers", "probability", now, 1e-3, is_margin=True)
    if targets.spare_servers > 0:
        yield Movable(
            "targets.spare_servers",
            "spare_servers",
            "servers",
            float(targets.spare_servers),
            0.0,
            is_whole=True,
            is_margin=True,
        )


def _demand(instance: Instance) -> Iterator[Movable]:
    workload = instance.workload
    demands = (
        [(f"workload.classes[{index}].demand", one.demand) for index, one in enumerate(workload.classes)]
        if workload.classes
        else [("workload.demand", one.demand) for one in workload.all_classes()]
    )
    units = {"requests_per_s": "requests/s", "output_tokens_per_s": "tokens/s", "concurrent_users": "users"}
    for where, demand in demands:
        for name, unit in units.items():
            now = getattr(demand, name)
            if now is not None:
                yield Movable(
                    f"{where}.{name}", "throughput_requests_per_s", unit, now, now * _NO_DEMAND, is_demand=True
                )


def widenable(instance: Instance, catalog: Catalog) -> tuple[Widened, ...]:
    """Lists of choices that leave something out, with all that the catalogue offers.

    Roles of replicas are left as they are, and where they may be two, layouts too: every prefill layout is paired with
    every decode layout, so that an attempt would have tens of millions of candidates.
    """
    choices = instance.choices
    has_units = "disaggregated" in choices.serving_roles
    found: list[Widened] = []

    def add(name: str, now: Iterable[str | int], widest: Iterable[str | int]) -> None:
        mine = tuple(now)
        rest = [one for one in widest if one not in mine]
        if rest:
            found.append(Widened(f"choices.{name}", mine, (*mine, *rest)))

    if choices.accelerators is not None:
        mine = [catalog.resolve_accelerator(one) for one in choices.accelerators]
        own = [] if isinstance(instance.catalog, str) else [row.id for row in instance.catalog.accelerators]
        current = [key for key, row in sorted(catalog.accelerators.items()) if row.availability == "current"]
        add("accelerators", mine, dict.fromkeys([*own, *current]))
    if choices.schemes is not None:
        add("schemes", choices.schemes, sorted(catalog.schemes))
    add("kv_schemes", choices.kv_schemes, sorted(catalog.kv_schemes))
    add("recovery_steps", choices.recovery_steps, get_args(RecoveryStepName))
    if choices.cooling is not None:
        offered = [key for key, row in sorted(catalog.cooling.items()) if row.offered_by_default]
        add("cooling", choices.cooling, offered)
    # How much of the time spot servers serve is the planner's to say, so without it they are no way out.
    ways = get_args(Sourcing) if choices.spot_availability_fraction is not None else _WITHOUT_SPOT
    add("sourcing", choices.sourcing, ways)
    if has_units:
        return tuple(found)
    add("tensor_parallel", choices.tensor_parallel, _TENSOR)
    add("pipeline_parallel", choices.pipeline_parallel, _PIPELINE)
    if choices.expert_parallel is not None:
        add("expert_parallel", choices.expert_parallel, _TENSOR)
    add("attention_data_parallel", choices.attention_data_parallel, (1, 2, 4, 8, 16, 32))
    return tuple(found)
