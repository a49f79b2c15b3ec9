"""Random small instances that nothing fits: limits far too tight, or caps a little below what any plan takes."""

from collections.abc import Callable
from random import Random
from typing import Any

from optimizer.instance.model import Instance
from optimizer.studies.best import best_plan
from tests.core.real import small

Json = dict[str, Any]


def _latency(random: Random, sections: Json) -> None:
    name = random.choice(("tpot_ms", "ttft_ms", "latency_ms"))
    low = {"tpot_ms": 0.5, "ttft_ms": 2.0, "latency_ms": 30.0}[name]
    sections["targets"][name] = round(low * random.uniform(0.5, 4.0), 3)


def _memory(random: Random, sections: Json) -> None:
    name = random.choice(("vram_fraction", "vram_gib_per_accelerator", "weights_gib_per_accelerator"))
    sections["targets"][name] = round(random.uniform(0.02, 0.06) if "fraction" in name else random.uniform(0.4, 2.5), 3)


def _accuracy(random: Random, sections: Json) -> None:
    sections["choices"]["schemes"] = random.choice((["w4a16-int4"], ["w8a8-int8"]))
    if random.random() < 0.5:
        sections["targets"]["accuracy_floor_fraction"] = random.choice((0.9995, 1.0))
    else:
        sections["targets"] |= {"accuracy_floor_score": 79.9, "accuracy_baseline_score": 80.0}
    sections["targets"]["accuracy_confidence"] = random.choice((0.5, 0.8, 0.9))


def _link(random: Random, sections: Json) -> None:
    sections["choices"]["tensor_parallel"] = [2]
    sections["targets"]["nvlink_gb_s"] = round(random.uniform(0.001, 0.02), 4)


def _power(random: Random, sections: Json) -> None:
    sections["site"]["power_kw"] = round(random.uniform(0.5, 4.0), 2)


def _racks(random: Random, sections: Json) -> None:
    sections["site"]["racks"] = 0
    if random.random() < 0.5:
        sections["site"]["rack_kw"] = round(random.uniform(1.0, 4.0), 2)


def _money(random: Random, sections: Json) -> None:
    name, most = random.choice((("budget_capex_usd", 20_000.0), ("budget_usd_per_year", 2_000.0)))
    sections["economics"][name] = round(most * random.uniform(0.1, 1.0), 2)


def _supply(random: Random, sections: Json) -> None:
    for name in sections["choices"]["accelerators"]:
        sections["choices"].setdefault("supply", {})[name] = random.choice((0, 1, 3, 7))


#: What can be too tight.
TIGHT: tuple[Callable[[Random, Json], None], ...] = (
    _latency,
    _memory,
    _accuracy,
    _link,
    _power,
    _racks,
    _money,
    _supply,
)


def _base(random: Random) -> Json:
    return {
        "choices": {
            "accelerators": random.choice((["l40s"], ["l40s"], ["h100-80gb-sxm"], ["l40s", "h100-80gb-sxm"])),
            "schemes": ["w16a16"],
            "tensor_parallel": random.choice(([1], [1, 2])),
            "sourcing": ["buy"],
            "max_concurrency": random.choice((16, 64)),
        },
        "targets": {"spare_fraction": random.choice((0.0, 0.05)), "spare_servers": random.choice((0, 1))},
        "site": {},
        "economics": {},
        "workload": {"demand": {"requests_per_s": random.choice((20.0, 100.0, 300.0, 1000.0))}},
    }


def _far(random: Random) -> Json:
    """Limits far too tight."""
    sections = _base(random)
    for tighten in random.sample(TIGHT, random.choice((1, 1, 1, 2, 2, 3))):
        tighten(random, sections)
    return sections


def _near(random: Random) -> Json:
    """Caps somewhat below what the cheapest plan takes: less demand, fewer spares or a little more would do."""
    sections = _base(random)
    plan = best_plan(small(**sections))
    if plan is None:
        return sections
    share = random.uniform(0.5, 0.99)
    for cap in random.sample(("power", "racks", "capital", "yearly", "supply"), random.choice((1, 1, 2))):
        if cap == "power":
            sections["site"]["power_kw"] = round(plan.power_kw * share, 3)
        elif cap == "racks":
            sections["site"]["racks"] = max(0, sum(group.racks for group in plan.servers) - 1)
        elif cap == "capital":
            sections["economics"]["budget_capex_usd"] = round(plan.bill.capital_usd * share, 2)
        elif cap == "yearly":
            sections["economics"]["budget_usd_per_year"] = round(plan.bill.usd_per_year * share, 2)
        else:
            count = int(plan.accelerators * share)
            sections["choices"]["supply"] = dict.fromkeys(sections["choices"]["accelerators"], count)
    return sections


def draw(seed: int) -> Instance:
    """An instance that nothing fits."""
    random = Random(f"advice {seed}")
    for _ in range(20):
        given = small(**(_near(random) if random.random() < 0.6 else _far(random)))
        if best_plan(given) is None:
            return given
    raise RuntimeError(f"no infeasible instance in 20 draws from seed {seed}")
