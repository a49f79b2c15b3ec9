"""Bad inputs, at least one for each code that reading can give. Their messages are a golden file."""

from typing import Any, Final

from tests.instance.samples import changed, several_classes, sound, training

_COOLING_ROW: Final[dict[str, Any]] = {
    "id": "pond",
    "rack_kw_practical": 20,
    "rack_kw_upper": 30,
    "capex_low_usd_per_kw": 1,
    "capex_typical_usd_per_kw": 1,
    "capex_high_usd_per_kw": 1,
    "capex_marginal_usd_per_kw": 1,
    "supply_temperature_min_c": 18,
    "supply_temperature_max_c": 27,
    "heat_rejection_driver": "dry_bulb",
    "distribution_fraction": 0.1,
    "rejection_fraction": 0.1,
    "cop_ref": 4,
    "cop_ref_c": 24,
    "cop_slope_per_k": 0.1,
    "electrical_loss_fraction": 0.05,
}

_MODEL_ROW: Final[dict[str, Any]] = {
    "id": "mine",
    "layers": 2,
    "hidden": 64,
    "heads": 4,
    "kv_heads": 4,
    "head_dim": 16,
    "v_head_dim": 16,
    "ffn": 256,
    "vocabulary": 100,
    "max_context_tokens": 4096,
}

_OFFER: Final[dict[str, Any]] = {
    "id": "mine/x/l40s",
    "provider": "mine",
    "accelerator": "l40s",
    "accelerators": 8,
    "on_demand_usd_per_accelerator_hour": 1,
}

_NO_RENT: Final[dict[str, Any]] = {
    "choices/accelerators": ["gaudi3", "h20-96gb-sxm"],
    "choices/supply": ...,
    "choices/sourcing": ["reserved_3yr"],
}

_OWNED: Final[dict[str, Any]] = {
    "accelerator": "a100-80gb-sxm",
    "servers": 4,
    "cooling": "air_containment_econ",
    "remaining_life_years": 2,
}


_THREE: Final = ("targets.tpot_ms", "targets.ttft_ms", "site.power_kw")


def _uncertain(field: str, distribution: str, **parameters: Any) -> dict[str, Any]:
    return {"field": field, "distribution": distribution, **parameters}


def _tied(first: str, second: str, rank_correlation: float) -> dict[str, Any]:
    return {"first": first, "second": second, "rank_correlation": rank_correlation}


def spoilt() -> dict[str, dict[str, Any]]:
    """Instances by the name of their fault."""
    row = "catalog/purchase_prices/0"
    return {
        "unknown key at the top": changed({"targtes": {}}),
        "unknown key, nothing like it": changed({"colour": "blue"}),
        "key of another section": changed({"workload/tpot_ms": 50}),
        "misspelt required key": changed({"workload/model": ..., "workload/modle": "Llama-3.1-70B"}),
        "misspelt key beside the right one": changed({"targets/tpotms": 50}),
        "unknown keys everywhere": changed(
            {"choices/gpus": [], "site/colour": 1, "economics/discount": 1, "catalog/gpus": [], "solver/gapp": 1}
        ),
        "no name": changed({"name": ...}),
        "empty name": changed({"name": ""}),
        "name is a number": changed({"name": 7}),
        "version of the future": changed({"format_version": 2}),
        "no workload": changed({"workload": ...}),
        "workload is a list": changed({"workload": []}),
        "tokens missing": changed({"workload/request/output_tokens": ...}),
        "tokens as a fraction": changed({"workload/request/input_tokens": 1000.5}),
        "tokens with a decimal point": changed({"workload/request/input_tokens": 1000.0}),
        "tokens as a truth": changed({"workload/request/input_tokens": True}),
        "tokens negative": changed({"workload/request/input_tokens": -5}),
        "tokens huge": changed({"workload/request/input_tokens": 10**40}),
        "engine misspelt": changed({"workload/engine": "vlm"}),
        "kind unknown": changed({"workload/kind": "trainng"}),
        "kind is a number": changed({"workload/kind": 3}),
        "serving keys in training": changed({"workload/kind": "training"}),
        "a size twice": changed({"workload/parameters_b": 70}, training()),
        "no size": changed({"workload/model": ...}, training()),
        "active without a size": changed({"workload/active_parameters_b": 7}, training()),
        "more active than all": changed({"workload/jobs/1/active_parameters_b": 700}, training()),
        "no amount": changed({"workload/tokens": ...}, training()),
        "two jobs of one name": changed({"workload/jobs/1/name": "main"}, training()),
        "job without a window": changed({"workload/jobs/1/earliest_start_day": 95}, training()),
        "job of an unknown model": changed({"workload/jobs/0/model": "Llama-3.1-71B"}, training()),
        "latency for training": changed({"targets/tpot_ms": 50}, training()),
        "deadline for serving": changed({"targets/deadline_days": 50}),
        "site beside sites": changed({"site": {"power_kw": 5}}, training()),
        "yearly budget for training": changed({"economics/budget_usd_per_year": 5}, training()),
        "spot for training": changed(
            {"choices/sourcing": ["buy", "spot"], "choices/spot_availability_fraction": 0.9}, training()
        ),
        "yearly cap for training": changed({"sites/0/carbon_tonnes_per_year": 5}, training()),
        "sites for serving": changed({"sites": [{"name": "east"}]}),
        "two sites of one name": changed({"sites/1/name": "east"}, training()),
        "link to nowhere": changed({"wan_links/0/between/1": "north"}, training()),
        "link to itself": changed({"wan_links/0/between/1": "east"}, training()),
        "link of no rate": changed({"wan_links/0/gbit_per_s": 0}, training()),
        "link of one end": changed({"wan_links/0/between": ["east"]}, training()),
        "climate of a site unknown": changed({"sites/0/climate": "us_or_hillsborough"}, training()),
        "class name empty": changed({"workload/classes/0/name": ""}, several_classes()),
        "model unknown": changed({"workload/model": "Llama-3.1-71B"}),
        "model like nothing": changed({"workload/model": "zzzzzzzzzz"}),
        "model is a number": changed({"workload/model": 70}),
        "model inline, incomplete": changed({"workload/model": {"id": "mine", "layers": 2}}),
        "model inline, contradicts itself": changed({"workload/model": {**_MODEL_ROW, "experts": 8}}),
        "model file missing": changed({"workload/model": "nowhere/config.json"}),
        "model file broken": changed({"workload/model": "broken/config.json"}),
        "two units of demand": changed({"workload/demand/output_tokens_per_s": 100}),
        "no unit of demand": changed({"workload/demand": {}}),
        "think time alone": changed({"workload/demand/think_time_s": 5}),
        "load twice": changed({"workload/load/hourly_fractions": [0.5] * 24}),
        "profile of 23 hours": changed({"workload/load": {"hourly_fractions": [0.5] * 23}}),
        "profile of zeros": changed({"workload/load": {"hourly_fractions": [0] * 24}}),
        "profile above 1": changed({"workload/load": {"hourly_fractions": [0.5] * 23 + [1.5]}}),
        "classes beside a request": changed({"workload/request": sound()["workload"]["request"]}, several_classes()),
        "no request and no classes": changed({"workload/request": ..., "workload/demand": ...}),
        "two classes of one name": changed({"workload/classes/1/name": "chat"}, several_classes()),
        "context too short": changed({"workload/max_context_tokens": 1200}),
        "time with its unit": changed({"targets/tpot_ms": "150 ms"}),
        "time in another unit": changed({"targets/tpot_ms": "0.15 s"}),
        "time in words": changed({"targets/tpot_ms": "fast"}),
        "time is null where a figure is due": changed({"targets/vram_fraction": None}),
        "time negative": changed({"targets/tpot_ms": -5}),
        "time zero": changed({"targets/ttft_ms": 0}),
        "accuracy as a percentage": changed({"targets/accuracy_floor_fraction": 98.7}),
        "accuracy in quotes": changed({"targets/accuracy_floor_fraction": "98.7 %"}),
        "half an absolute floor": changed({"targets/accuracy_floor_fraction": ..., "targets/accuracy_floor_score": 60}),
        "two floors": changed({"targets/accuracy_floor_score": 60, "targets/accuracy_baseline_score": 61}),
        "floor above the baseline": changed(
            {
                "targets/accuracy_floor_fraction": ...,
                "targets/accuracy_floor_score": 70,
                "targets/accuracy_baseline_score": 61,
            }
        ),
        "first token after the last": changed({"targets/latency_ms": 900}),
        "first token of a class after the last": changed(
            {"workload/classes/0/targets": {"latency_ms": 900}}, several_classes()
        ),
        "weights above memory": changed(
            {"targets/weights_gib_per_accelerator": 20, "targets/vram_gib_per_accelerator": 12}
        ),
        "no accelerators": changed({"choices/accelerators": []}),
        "accelerators not in a list": changed({"choices/accelerators": "l40s"}),
        "accelerator unknown": changed({"choices/accelerators/1": "l40x"}),
        "accelerator twice": changed({"choices/accelerators/1": "h100-80gb-sxm"}),
        "accelerator twice by an alias": changed({"choices/accelerators/1": "H100 SXM"}),
        "supply of a fraction": changed({"choices/supply/l40s": 1.5}),
        "degree zero": changed({"choices/tensor_parallel/0": 0}),
        "degree twice": changed({"choices/tensor_parallel/0": 2}),
        "scheme unknown": changed({"choices/schemes/0": "w8a8-fp"}),
        "sourcing unknown": changed({"choices/sourcing/0": "rent"}),
        "spot without its availability": changed({"choices/sourcing": ["spot", "buy"]}),
        "provider unknown": changed({"choices/providers": ["Lambada"]}),
        "region unknown to every offer": changed({"choices/regions": ["us-east-11"]}),
        "supply of a provider that nobody knows": changed({"choices/provider_supply": {"Oracle": {"l40s": 8}}}),
        "supply of an unknown accelerator by a provider": changed({"choices/provider_supply": {"OCI": {"l40x": 8}}}),
        "cooling unknown": changed({"choices/cooling/0": "air_crak"}),
        "nothing has a price": changed(_NO_RENT),
        "uncertain, no fields known there": changed({"uncertainty": {"field": []}}),
        "uncertain, every parameter wrong": changed(
            {
                "uncertainty": {
                    "fields": [
                        _uncertain("targets.tpot_ms", "uniform", low=1),
                        _uncertain("targets.ttft_ms", "normal", mean=1, standard_deviation=2, mode=3),
                        _uncertain("site.power_kw", "triangular", low=3, mode=2, high=2),
                        _uncertain("site.power_kw", "triangular", low=1, mode=5, high=2),
                        _uncertain("economics.discount_rate", "discrete", values=[1, 2], probabilities=[1]),
                        _uncertain("economics.horizon_years", "discrete", values=[1, 2], probabilities=[0.5, 0.6]),
                        _uncertain("economics.server_life_years", "normall", mean=1, standard_deviation=-1),
                        {"field": "", "distribution": "uniform", "low": "1", "high": 2},
                        {"distribution": "uniform", "low": 1, "high": 2},
                        _uncertain("economics.rack_usd", "discrete", values=[], probabilities=[1.5]),
                    ],
                    "scenarios": 1,
                    "risk_level": 90,
                }
            }
        ),
        "uncertain twice, correlations astray": changed(
            {
                "uncertainty": {
                    "fields": [_uncertain(name, "uniform", low=1, high=2) for name in _THREE[:2] * 2],
                    "correlations": [_tied(_THREE[0], "targets.tpot", 0.5), _tied(_THREE[0], _THREE[0], 0.5)],
                }
            }
        ),
        "correlations that contradict": changed(
            {
                "uncertainty": {
                    "fields": [_uncertain(name, "uniform", low=1, high=2) for name in _THREE],
                    "correlations": [
                        _tied(_THREE[0], _THREE[1], 0.9),
                        _tied(_THREE[1], _THREE[2], 0.9),
                        _tied(_THREE[0], _THREE[2], -0.9),
                    ],
                }
            }
        ),
        "uncertain field misspelt": changed(
            {"uncertainty": {"fields": [_uncertain("targets.tpott_ms", "uniform", low=1, high=2)]}}
        ),
        "uncertain fields that are no numbers": changed(
            {
                "uncertainty": {
                    "fields": [
                        _uncertain("choices.schemes", "uniform", low=1, high=2),
                        _uncertain("solver.gap", "uniform", low=0.1, high=0.2),
                    ]
                }
            }
        ),
        "climate unknown": changed({"site/climate": "us_va_asburn"}),
        "region unknown": changed({"site/electricity_region": "Atlantis"}),
        "region without a price": changed({"site/electricity_region": "CA-ON"}),
        "tariff beside a price": changed(
            {"site/electricity_usd_per_kwh": 0.1, "site/tariff": {"energy_usd_per_kwh": 0.05}}
        ),
        "tariff without energy": changed({"site/tariff": {"demand_usd_per_kw_month": 12}}),
        "tariff of twelve hours": changed({"site/tariff": {"hourly_usd_per_kwh": [0.1] * 12}}),
        "tariff in two forms": changed(
            {"site/tariff": {"hourly_usd_per_kwh": [0.1] * 24, "periods": [{"usd_per_kwh": 0.2, "hours": [17, 18]}]}}
        ),
        "hour of a tariff": changed(
            {"site/tariff": {"energy_usd_per_kwh": 0.1, "periods": [{"usd_per_kwh": 0.2, "hours": [24]}]}}
        ),
        "power negative": changed({"site/power_kw": -500}),
        "power in megawatts": changed({"site/power_kw": "0.5 MW"}),
        "management servers without a price": changed({"economics/services/servers_per_management_server": 16}),
        "rate as a percentage": changed({"economics/discount_rate": 8}),
        "price in thousands": changed({"economics/prices/l40s/server_usd": "90k"}),
        "price of an unknown accelerator": changed({"economics/prices/l50s": {"server_usd": 90000}}),
        "price of one accelerator twice": changed({"economics/prices/L40S": {"server_usd": 90000}}),
        "price level unknown": changed({"economics/price_level": "cheap"}),
        "price classes empty": changed({"economics/price_classes": []}),
        "price class twice": changed({"economics/price_classes": ["list", "list"]}),
        "discount without its step": changed({"economics/prices/l40s/discounts/0/from_servers": ...}),
        "discounts out of order": changed(
            {
                "economics/prices/l40s/discounts": [
                    {"from_servers": 8, "discount_fraction": 0.1},
                    {"from_servers": 4, "discount_fraction": 0.05},
                ]
            }
        ),
        "weather as a list": changed({"site/climate_bins": [{"temperature_c": 3, "hours": 8760}]}),
        "weather of half a form": changed({"site/climate_bins": {"temperature_c": [1, 3], "dry_bulb_hours": [1, 2]}}),
        "weather of both forms": changed(
            {
                "site/climate_bins": {
                    "temperature_c": [1],
                    "dry_bulb_hours": [1],
                    "wet_bulb_hours": [1],
                    "wet_bulb_c": [],
                }
            }
        ),
        "weather whose bins fall": changed(
            {"site/climate_bins": {"temperature_c": [3, 1], "dry_bulb_hours": [1, 2], "wet_bulb_hours": [0, 0]}}
        ),
        "weather with bins without hours": changed(
            {"site/climate_bins": {"temperature_c": [3, 5], "dry_bulb_hours": [1], "wet_bulb_hours": [1, 2, 3]}}
        ),
        "weather of a day": changed({"site/climate_bins": {"dry_bulb_c": [5] * 24, "wet_bulb_c": [9] * 23}}),
        "network discounts out of order": changed(
            {
                "economics/network_discounts": [
                    {"from_accelerators": 64, "discount_fraction": 0.1},
                    {"from_accelerators": 64, "discount_fraction": 0.2},
                ]
            }
        ),
        "plant discounts out of order": changed(
            {
                "economics/cooling_prices/air_crac/discounts": [
                    {"from_kw": 500, "discount_fraction": 0.2},
                    {"from_kw": 900, "discount_fraction": 0.1},
                ]
            }
        ),
        "owned servers of an unknown type": changed({"inventory": [{**_OWNED, "accelerator": "a100-80"}]}),
        "owned servers in an unknown cooling": changed({"inventory": [{**_OWNED, "cooling": "air_containment"}]}),
        "owned servers none": changed({"inventory": [{**_OWNED, "servers": 0}]}),
        "owned servers without their life": changed({"inventory": [{**_OWNED, "remaining_life_years": None}]}),
        "owned servers without a count": changed({"inventory": [{"accelerator": "l40s"}]}),
        "owned servers with a key too many": changed({"inventory": [{**_OWNED, "racks": 2}]}),
        "owned servers of a type without a name": changed({"inventory": [{**_OWNED, "accelerator": ""}]}),
        "owned servers twice": changed({"inventory": [_OWNED, {**_OWNED, "servers": 2}]}),
        "owned liquid servers in air": changed(
            {"inventory": [{**_OWNED, "accelerator": "gb200-nvl72", "remaining_life_years": 9}]}
        ),
        "owned servers that nobody sells": changed({"inventory": [{**_OWNED, "accelerator": "a10g"}]}),
        "own price of an unknown accelerator": changed({f"{row}/accelerator": "l4oos"}),
        "own price negative": changed({f"{row}/low_usd": -1}),
        "own price out of order": changed({f"{row}/low_usd": 9}),
        "own price as text": changed({f"{row}/low_usd": "1"}),
        "own price without a figure": changed({f"{row}/typical_usd": ...}),
        "own price of an unknown unit": changed({f"{row}/unit": "pallet"}),
        "own price with a bad date": changed({f"{row}/as_of": "last May"}),
        "own cooling twice": changed({"catalog/cooling": [_COOLING_ROW, _COOLING_ROW]}),
        "own rows as a number": changed({"catalog": 5}),
        "own rows in a missing file": changed({"catalog": "nowhere.json"}),
        "own rows in a file with faults": changed({"catalog": "rows.json"}),
        "own offer and price in one go": changed({"catalog/rental_offers": [{**_OFFER, "accelerators": 0}]}),
        "gap of a half and more": changed({"solver/gap": 0.6}),
        "threads as text": changed({"solver/threads": "all"}),
        "solver option unknown": changed({"solver/presolve": "off"}),
        "solver is null": changed({"solver": None}),
    }


#: Texts that are no JSON object of a bearable kind.
TEXTS: Final[dict[str, str]] = {
    "empty": "",
    "spaces": " \n\t\n",
    "broken": '{\n  "name": "x",\n  "workload": {\n}',
    "comma at the end": '{\n  "name": "x",\n}',
    "single quotes": "{'name': 'x'}",
    "comment": '{\n  // the name\n  "name": "x"\n}',
    "not a number": '{"name": "x", "targets": {"tpot_ms": NaN, "ttft_ms": Infinity}}',
    "key twice": '{\n  "name": "x",\n  "name": "y"\n}',
    "list": "[1, 2, 3]",
    "text": '"instance"',
    "null": "null",
    "deep": "[" * 100_000,
    "many values": "[" + "0," * 300_000,
    "surrogate": '{"name": "\\ud800"}',
    "terminal escape": '{"name": "x", "\\u001b[31mred": 1}',
}

#: Files that lie beside the instances of the corpus.
FILES: Final[dict[str, str]] = {
    "broken/config.json": '{"layers": ',
    "rows.json": '{\n "accelerators": {},\n "purchase_prices": [{"accelerator": "nothing like it"}]\n}\n',
}
