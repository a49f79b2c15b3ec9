"""Random small instances that nothing fits: one to three limits far too tight."""

from collections.abc import Callable
from random import Random
from typing import Any

from optimizer.instance.model import Instance
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


def draw(seed: int) -> Instance:
    """An instance that nothing fits, as a rule."""
    random = Random(f"advice {seed}")
    sections: Json = {
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
        "workload": {"demand": {"requests_per_s": random.choice((20.0, 100.0, 300.0))}},
    }
    for tighten in random.sample(TIGHT, random.choice((1, 1, 1, 2, 2, 3))):
        tighten(random, sections)
    return small(**sections)
