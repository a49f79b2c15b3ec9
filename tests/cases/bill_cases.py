"""Published cost and power cases: what was asked, the right value, and the product call that answers it.

Values, tolerances and sources are those of public reports, read in August 2026; the inputs of each call are the case's
own.
"""

import json
from functools import cache

from optimizer import api
from optimizer.catalog.rows import Accelerator
from optimizer.costs.renting import break_even_utilization
from optimizer.costs.tokens import usd_per_million_tokens, usd_per_used_hour
from optimizer.instance.model import Instance
from optimizer.performance.factors import GENERATIONS
from optimizer.performance.power import busy_power_kw, decode_fraction_of_tdp, peak_power_kw, server_power
from optimizer.performance.power_cap import cap_curves, draw_under_cap, speed_under_cap
from optimizer.plan import Plan
from optimizer.report.cash_flow import UnitCosts, unit_costs
from optimizer.units import HOURS_PER_YEAR, MONTHS_PER_YEAR
from tests.cases.build import catalog, factors
from tests.cases.memory_cases import Case
from tests.core.hand import bought, data_of, instance, offered, price, server_type, solve
from tests.costs.published import billed_energy_usd, billed_rent_usd

#: The 50 MW site of POW-06 and CST-14: accelerators of 1 kW, 1.3 of it with their server, PUE 1.2.
SITE_KW, SERVER_KW, PUE = 50_000.0, 1.3, 1.2


@cache
def accelerators_that_fit(most: int = 50_000) -> float:
    """Most accelerators that the program's power limit lets stand at the 50 MW site, by halving."""
    of = server_type(per_server=1)
    pools = [bought("hall", of, server_kw=SERVER_KW, pue=PUE)]
    given = instance(site={"power_kw": SITE_KW})
    low, high = 0, most + 1
    while high - low > 1:
        wanted = (low + high) // 2
        data = data_of(
            given,
            pools,
            [offered("d", of, width=1)],
            [price(("Servers", "hall"), 1.0)],
            demand=(float(wanted),),
            most_servers=most,
        )
        low, high = (wanted, high) if solve(data) is not None else (low, wanted)
    return float(low)


def power_bill_usd_million(years: float = 5.0) -> float:
    """Energy bill of that site at 70 % use and 0.08 USD/kWh over years of 8,760 hours."""
    it_kwh = accelerators_that_fit() * SERVER_KW * 0.7 * 8760.0 * years
    return billed_energy_usd(it_kwh, 0.08, PUE) / 1e6


def h100() -> Accelerator:
    return catalog().accelerators["h100-80gb-sxm"]


@cache
def h100_server_kw(load: float | None = None) -> float:
    """An eight-H100 server: its rated maximum, or what it draws while it serves at a load."""
    row = h100()
    index = GENERATIONS.index(row.generation)
    power = server_power(index, factors(), accelerators=8, tdp_w=row.tdp_w, maximum_kw=row.server_power_kw)
    return float(peak_power_kw(power) if load is None else busy_power_kw(power, load))


def monthly_rent_usd(accelerators: int, usd_per_month: float) -> float:
    """Rent of a month of so many accelerators, billed by the hour."""
    hours = HOURS_PER_YEAR / MONTHS_PER_YEAR
    return billed_rent_usd(accelerators, usd_per_month / accelerators / hours, hours)


@cache
def long_prompts() -> Plan:
    """A plan for 8,192 tokens in and 1,024 out."""
    request = {"input_tokens": 8192, "output_tokens": 1024}
    given = {
        "name": "8k in, 1k out",
        "workload": {"model": "llama-3.1-8b", "request": request, "demand": {"requests_per_s": 2}},
        "choices": {"accelerators": ["h100-80gb-sxm"]},
    }
    found = api.solve(Instance.model_validate_json(json.dumps(given))).plan
    assert found is not None
    return found


def unit_costs_of_long_prompts() -> UnitCosts:
    return unit_costs(long_prompts())


def output_over_total() -> float:
    """How many times dearer a million output tokens are than a million tokens of both kinds."""
    found = unit_costs_of_long_prompts()
    assert found.usd_per_million_output_tokens is not None
    assert found.usd_per_million_total_tokens is not None
    return found.usd_per_million_output_tokens / found.usd_per_million_total_tokens


CASES: tuple[Case, ...] = (
    Case("POW-06", 32051, "GPUs", 0.1, "aiinframap.com/tools/energy/cluster-buildout-sizer", accelerators_that_fit),
    Case("POW-07", 10.2, "kW", 5, "gpuadvisor.com; supercluster.blog: maker's maximum", h100_server_kw),
    Case(
        "POW-03",
        1.394,
        "tokens/J ratio",
        1,
        "github.com/sudoingX/qwen38-mtp/pull/47",
        lambda: speed_under_cap(cap_curves().memory, 1.0 - 0.317, 1.0) / draw_under_cap(1.0 - 0.317, 1.0),
    ),
    Case(
        "POW-04",
        0.1105,
        "tok/s per W",
        1,
        "github.com/noonghunna/club-3090/issues/58",
        lambda: 38.23 * speed_under_cap(cap_curves().arithmetic, 328.9, 388.0) / draw_under_cap(328.9, 388.0),
    ),
    Case(
        "POW-05",
        0.558,
        "tok/s per W",
        1,
        "github.com/noonghunna/club-3090/issues/697",
        lambda: 137.71 * speed_under_cap(cap_curves().memory, 360.0, 246.8) / draw_under_cap(360.0, 246.8),
    ),
    Case(
        "POW-09",
        600,
        "W",
        15,
        "github.com/vllm-project/semantic-router",
        lambda: float(decode_fraction_of_tdp(128, factors())) * h100().tdp_w,
    ),
    Case(
        "CST-10",
        460.8,
        "M tokens/month",
        1,
        "kshirol-dev.github.io/learnAI/AIInfrastructure",
        # A million tokens of an API are what is rented by use: owned cost of the month over the price of one unit.
        lambda: break_even_utilization(monthly_rent_usd(4, 4608.0), 10.0),
    ),
    Case(
        "CST-11",
        6.536,
        "USD/M tokens",
        0.5,
        "gmicloud.ai/en/blog/llm-inference-cost-per-million-tokens",
        lambda: usd_per_million_tokens(billed_rent_usd(1, 2.0, 1.0), 85.0),
    ),
    Case(
        "CST-13",
        1.389,
        "USD/M tokens",
        1,
        "tools.gera.services/inference-endpoint-cost-calculator",
        lambda: usd_per_million_tokens(usd_per_used_hour(billed_rent_usd(1, 2.0, 1.0), 0.2), 2000.0),
    ),
    Case(
        "CST-14", 122.64, "USD million", 1, "aiinframap.com/tools/energy/cluster-buildout-sizer", power_bill_usd_million
    ),
    Case(
        "CST-15",
        0.333,
        "USD/M tokens",
        3,
        "mohithg.com/writing/gpu-economics",
        lambda: usd_per_million_tokens(usd_per_used_hour(billed_rent_usd(1, 3.0, 1.0), 0.5), 5000.0),
    ),
    Case("CST-16", 9, "output over total", 1, "github.com/SemiAnalysisAI/InferenceX-app/pull/653", output_over_total),
)

#: Cases of the same kinds whose value no product call gives, and why; where a verdict goes with it, that is tested.
EXEMPT: dict[str, str] = {
    "POW-08": "middle of a measured range; that decode and prefill lie within the ranges is tested",
    "POW-11": "a temperature of one card; the product plans heat, not temperatures",
    "CST-02": "another catalogue's placeholder; that ours has none and that a planner's own is told is tested",
    "CST-04": "another catalogue's count; that our row of the same instance has eight accelerators is tested",
    "CST-06": "a price another catalogue lacked, of a day gone by; spot against on demand is tested",
    "CST-12": "a rule of thumb (parameters x bytes x 1.2); what it is asked for, whether the model starts, is tested",
}
