"""Ways to change an instance: limits made looser, options added, prices scaled, lists reordered."""

import json
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

from optimizer.instance.model import Instance
from tests.oracle.random_instances import read

Document = dict[str, Any]
#: Adds to or loosens one thing of a document; False where the document does not have it.
Change = Callable[[Document], bool]


def written(instance: Instance) -> Document:
    """What the file of an instance says."""
    document: Document = json.loads(instance.model_dump_json(exclude_unset=True, by_alias=True))
    return document


def changed(instance: Instance, change: Change) -> Instance | None:
    """The instance after a change; None where the change does not apply."""
    document = written(instance)
    return read(document) if change(document) else None


def _scaled(section: str, key: str, factor: float, top: float | None = None) -> Change:
    def apply(document: Document) -> bool:
        part = document.get(section, {})
        if part.get(key) is None:
            return False
        part[key] = part[key] * factor if top is None else min(top, part[key] * factor)
        return True

    return apply


def _more(section: str, key: str) -> Change:
    def apply(document: Document) -> bool:
        part = document.get(section, {})
        if part.get(key) is None:
            return False
        part[key] += 1
        return True

    return apply


def _dropped(section: str, key: str) -> Change:
    def apply(document: Document) -> bool:
        return document.get(section, {}).pop(key, None) is not None

    return apply


def _latency(key: str) -> Change:
    def apply(document: Document) -> bool:
        parts = [document["targets"], *(one.get("targets", {}) for one in document["workload"].get("classes", []))]
        having = [part for part in parts if part.get(key) is not None]
        for part in having:
            part[key] *= 1.3
        return bool(having)

    return apply


def _supply(document: Document) -> bool:
    supply = document["choices"].get("supply")
    for key in supply or {}:
        supply[key] += 8
    return bool(supply)


def _no_spares(document: Document) -> bool:
    document["targets"]["spare_servers"] = 0
    document["targets"]["spare_fraction"] = 0.0
    return True


def _lower_demand(document: Document) -> bool:
    workload = document["workload"]
    for demand in [one["demand"] for one in workload.get("classes", [])] or [workload["demand"]]:
        for key in demand:
            if key != "think_time_s":
                demand[key] *= 0.8
    return True


#: Limits made looser: the cost may not rise.
LOOSER: dict[str, Change] = {
    "more power": _scaled("site", "power_kw", 1.25),
    "more carbon": _scaled("site", "carbon_tonnes_per_year", 1.3),
    "more water": _scaled("site", "water_m3_per_year", 1.3),
    "power without limit": _dropped("site", "power_kw"),
    "one more rack": _more("site", "racks"),
    "more power per rack": _scaled("site", "rack_kw", 1.5),
    "more capital": _scaled("economics", "budget_capex_usd", 1.3),
    "more a year": _scaled("economics", "budget_usd_per_year", 1.1),
    "one more type": _more("choices", "max_accelerator_types"),
    "more supply": _supply,
    "longer time per token": _latency("tpot_ms"),
    "later first token": _latency("ttft_ms"),
    "lower accuracy floor": _scaled("targets", "accuracy_floor_fraction", 0.98),
    "more memory for weights": _scaled("targets", "weights_gib_per_accelerator", 1.5),
    "more traffic": _scaled("targets", "nvlink_gb_s", 2.0),
    "no spares": _no_spares,
    "less demand": _lower_demand,
}


def _added(key: str, values: tuple[Any, ...]) -> Change:
    def apply(document: Document) -> bool:
        known = document["choices"].get(key)
        new = [value for value in values if known is not None and value not in known]
        if not new:
            return False
        document["choices"][key] = [*known, new[0]]
        return True

    return apply


#: Options added: the cost may not rise.
ADDED: dict[str, Change] = {
    "accelerator": _added("accelerators", ("l40s", "h100-80gb-sxm", "gaudi3")),
    "tensor-parallel degree": _added("tensor_parallel", (2, 4, 8)),
    "pipeline-parallel degree": _added("pipeline_parallel", (3, 2, 4)),
    "scheme": _added("schemes", ("w8a16-int8", "w8a8-fp8", "w4a16-int4", "w16a16")),
    "KV scheme": _added("kv_schemes", ("kv8-int8", "kv8-fp8")),
    "recovery step": _added("recovery_steps", ("qad", "qat-lora")),
    "cooling option": _added("cooling", ("dynamic", "d2c_1p", "air_containment_econ")),
    "sourcing": _added("sourcing", ("reserved_3yr", "buy", "on_demand")),
    "concurrency": _scaled("choices", "max_concurrency", 2),
}


def in_other_units(document: Document) -> bool:
    """Requests/s as output tokens/s and the other way round, the same demand."""
    workload = document["workload"]
    some = False
    for one in workload.get("classes", []) or [workload]:
        demand, tokens = one["demand"], one["request"]["output_tokens"]
        if "requests_per_s" in demand:
            demand["output_tokens_per_s"] = demand.pop("requests_per_s") * tokens
            some = True
        elif "output_tokens_per_s" in demand:
            demand["requests_per_s"] = demand.pop("output_tokens_per_s") / tokens
            some = True
    return some


def shuffled(random: Random) -> Change:
    """Every list whose order says nothing, and every mapping, in another order."""

    def apply(document: Document) -> bool:
        choices = document["choices"]
        lists = [value for value in choices.values() if isinstance(value, list)]
        lists.append(document["workload"].get("classes", []))
        lists.append(document.get("catalog", {}).get("accelerators", []))
        for one in lists:
            random.shuffle(one)
        economics = document["economics"]
        for part in (economics.get("prices", {}), economics.get("cooling_prices", {}), document):
            items = list(part.items())
            random.shuffle(items)
            part.clear()
            part.update(items)
        return True

    return apply


def times_dearer(factor: float) -> Change:
    """Every price and budget that the instance states, its own catalogue rows included, times a factor."""

    def dearer(value: Any) -> Any:
        if isinstance(value, list):
            return [dearer(one) for one in value]
        return value * factor if isinstance(value, int | float) else value

    def scale(part: Any) -> None:
        if isinstance(part, list):
            for one in part:
                scale(one)
        elif isinstance(part, dict):
            for key, value in part.items():
                # Names of fields carry their unit, so money is what says so.
                if "usd" in key.split("_") and not isinstance(value, dict):
                    part[key] = dearer(value)
                else:
                    scale(value)

    def apply(document: Document) -> bool:
        # A default that is a price in dollars does not scale with the catalogue, so it is stated.
        document["economics"].setdefault("liquid_ready_usd_per_kw", 450.0)
        scale(document)
        return True

    return apply


def some_of(
    changes: dict[str, Change], instance: Instance, count: int, random: Random
) -> Iterator[tuple[str, Instance]]:
    """A few of the changes that apply to an instance, each by itself."""
    names = sorted(changes)
    random.shuffle(names)
    for name in names:
        other = changed(instance, changes[name]) if count > 0 else None
        if other is not None:
            count -= 1
            yield name, other
