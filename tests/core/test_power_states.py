"""Power states of servers in the hall: which there are, what they draw, and that a fleet runs in one of them."""

import json
from typing import Any

import pytest

from optimizer.api import solve
from optimizer.catalog import load_catalog
from optimizer.instance.model import Instance
from optimizer.instance.reading import read_instance_text
from optimizer.performance.power_cap import cap_curves, speed_under_cap
from optimizer.plan import Plan
from optimizer.power_states import accelerator_of, most_air_kw, server_type_id, speed_of
from optimizer.report.bom import materials
from optimizer.report.screen import render
from optimizer.setting import build_setting
from optimizer.verify import verify

#: Answers of 1,024 tokens to questions of 256: decoding, which a cap hardly slows.
WRITER: dict[str, Any] = {
    "name": "writer",
    "workload": {
        "model": "Llama-3.1-70B",
        "request": {"input_tokens": 256, "output_tokens": 1024},
        "demand": {"output_tokens_per_s": 60000},
        "load": {"mean_fraction": 0.6},
    },
    "targets": {"tpot_ms": 40},
    "choices": {"accelerators": ["h100-80gb-sxm"], "sourcing": ["buy"], "schemes": ["w8a8-fp8"]},
}


def instance(caps: list[float], **site: float) -> Instance:
    document = json.loads(json.dumps(WRITER))
    document["choices"] |= {"power_cap_fractions": caps}
    document["site"] = site
    return read_instance_text(json.dumps(document), "writer.json")


def plan(caps: list[float], **site: float) -> Plan:
    found = solve(instance(caps, **site)).plan
    assert found is not None
    assert not verify(found)
    return found


def test_power_of_a_capped_server_by_hand() -> None:
    """8 x H100 at 70 %: 10.2 kW less 8 x 700 W x 0.3 and a tenth of it for conversion and fans."""
    catalog = load_catalog()
    row = catalog.accelerators["h100-80gb-sxm"]
    curve = catalog.power_curves["hopper"]
    assert row.server_power_kw == 10.2
    assert most_air_kw(row, curve, 0.7) == pytest.approx(10.2 - 8 * 0.7 * 0.3 * 1.1)
    assert most_air_kw(row, curve, 1.0) == 10.2


def test_speed_of_a_capped_accelerator_by_hand() -> None:
    """70 % of the power: 0.7 / 0.84 of what serving draws, 0.7 / 0.97 of what prompts draw."""
    setting = build_setting(instance([0.7]), load_catalog())
    server_type = next(one for one in setting.server_types if one.power_cap_fraction == 0.7)
    found = speed_of(setting.catalog, server_type, is_large_dense=False)
    assert found.memory == speed_under_cap(cap_curves().memory, 0.7, 0.84)
    assert found.arithmetic == speed_under_cap(cap_curves().arithmetic, 0.7, 0.97)
    assert 0.95 < found.memory < 1.0
    assert 0.8 < found.arithmetic < 0.83


def test_states_are_server_types_of_the_hall_alone() -> None:
    document = json.loads(json.dumps(WRITER))
    document["choices"] |= {"power_cap_fractions": [0.8, 1.0], "sourcing": ["buy", "on_demand"]}
    setting = build_setting(read_instance_text(json.dumps(document), "writer.json"), load_catalog())
    caps = {pool.server_type.power_cap_fraction for pool in setting.pools if pool.in_hall}
    assert caps == {0.8, 1.0}
    assert {pool.server_type.power_cap_fraction for pool in setting.pools if not pool.in_hall} == {1.0}
    assert any(pool.id.startswith("h100-80gb-sxm@80% x8/buy/") for pool in setting.pools)


def test_servers_without_a_cap_are_not_bought_where_only_caps_are_allowed() -> None:
    document = json.loads(json.dumps(WRITER))
    document["choices"] |= {"power_cap_fractions": [0.8], "sourcing": ["buy", "on_demand"]}
    setting = build_setting(read_instance_text(json.dumps(document), "writer.json"), load_catalog())
    assert all((pool.server_type.power_cap_fraction == 0.8) == pool.in_hall for pool in setting.pools)
    assert {pool.in_hall for pool in setting.pools} == {True, False}


@pytest.mark.parametrize("cap", [1.0, 0.7, 0.625])
def test_names_are_read_back(cap: float) -> None:
    assert accelerator_of(server_type_id("h100-80gb-sxm", 8, cap)) == "h100-80gb-sxm"


def test_a_cap_brings_a_fleet_under_the_limit_of_the_site() -> None:
    free = plan([1.0])
    assert solve(instance([1.0], power_kw=0.7 * free.power_kw)).plan is None
    capped = plan([1.0, 0.9, 0.8, 0.7], power_kw=0.7 * free.power_kw)
    assert {group.power_cap_fraction for group in capped.servers} == {0.7}
    assert capped.power_kw <= 0.7 * free.power_kw
    assert any("under a power cap of 0.7" in one for one in capped.messages)


def test_the_checker_refuses_a_cap_that_is_not_allowed_and_two_states_of_a_type() -> None:
    one = plan([0.8])
    changed = one.model_copy(update={"instance": instance([0.9])})
    assert any("power_cap_fraction" in str(finding) for finding in verify(changed))
    two = one.servers[0].model_copy(update={"power_cap_fraction": 0.9, "pool": "other"})
    both = one.model_copy(update={"instance": instance([0.8, 0.9]), "servers": (*one.servers, two)})
    assert any("one power state" in str(finding) for finding in verify(both))


def test_a_cap_is_told_and_orders_the_same_servers() -> None:
    capped = plan([0.8])
    assert any("capped at 80 % of their power" in line for line in render(capped, width=120).splitlines())
    ordered = [one for one in materials(capped).items if one.group == "servers"]
    assert next(one.item for one in ordered if one.kind == "order") == (
        f"h100-80gb-sxm x8, {capped.servers[0].cooling} cooling, accelerators set to 0.8 of their power"
    )


@pytest.mark.parametrize("confidence", [0.5, 0.9])
def test_nothing_measured_stands_behind_a_capped_speed(confidence: float) -> None:
    """The band is the widest there is, and a confidence above 0.5 asks for it."""
    several = []
    for caps in ([1.0], [0.9]):
        document = json.loads(json.dumps(WRITER))
        document["targets"] |= {"confidence": confidence, "tpot_ms": 80}
        document["choices"]["power_cap_fractions"] = caps
        found = solve(read_instance_text(json.dumps(document), "writer.json")).plan
        assert found is not None
        assert not verify(found)
        several.append(found.deployments[0].prediction)
    free, capped = several
    assert free.evidence != "none"
    assert capped.evidence == "none"
    wide, narrow = (one.bands["tpot_ms"][1] / one.bands["tpot_ms"][0] for one in (capped, free))
    assert wide > narrow


@pytest.mark.parametrize("cap", [0.5, 1.1])
def test_caps_outside_what_is_measured_are_refused(cap: float) -> None:
    with pytest.raises(Exception, match="power_cap_fractions"):
        instance([cap])
