"""The bill of materials and the bill by year: their totals are the plan's, to the cent."""

import csv
import io
import json
import math
from decimal import Decimal
from pathlib import Path
from typing import Any, get_args

import pytest
from click.testing import CliRunner, Result

from optimizer.commands.app import app
from optimizer.plan import Plan
from optimizer.report.bom import LEAD_TIME, Kind, Materials, bom_csv, bom_json, bom_text, materials
from optimizer.report.cash_flow import bill_csv, bill_json, bill_text, flows, unit_costs
from optimizer.report.csv_tables import cents, to_cents
from optimizer.report.line_flows import life_years, purchases
from tests.instances import library

HERE = Path(__file__).parent
OLD_PLAN = HERE / "plan.json"
#: Bought with spares; rented; bought in two pools with tiers and own prices.
SOLVED = ("small-8b", "dense-600b-open", "volume-discounts", "mixed-fleet", "own-catalogue")
SHIPPED = ("an old plan", *SOLVED)


def plan_named(name: str) -> Plan:
    """The plan of a shipped instance, or the one that lies beside this test."""
    if name in SOLVED:
        plan = library.solved(name).plan
        assert plan is not None
        return plan
    return Plan.model_validate_json(OLD_PLAN.read_text(encoding="utf-8"))


@pytest.fixture(params=SHIPPED)
def plan(request: pytest.FixtureRequest) -> Plan:
    return plan_named(request.param)


@pytest.fixture
def old() -> Plan:
    return plan_named("an old plan")


def changed(plan: Plan, **economics: Any) -> Plan:
    """The plan over other years: its instance and what the bill says of them."""
    content = plan.model_dump(mode="json", by_alias=True)
    content["instance"]["economics"].update(economics)
    return Plan.model_validate_json(json.dumps(content))


def table(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def item(found: Materials, group: str) -> Any:
    return next(one for one in found.items if one.group == group)


class TestMaterials:
    """What is ordered, rented, run."""

    def test_totals_are_the_plans_to_the_cent(self, plan: Plan) -> None:
        found = materials(plan)
        assert cents(found.capital_usd) == cents(plan.bill.capital_usd)
        assert cents(found.usd_per_year) == cents(plan.bill.usd_per_year)
        kinds = [found.yearly_usd(kind) for kind in get_args(Kind)]
        assert cents(sum(kinds)) == cents(plan.bill.usd_per_year)

    def test_every_component_keeps_its_yearly_cost(self, plan: Plan) -> None:
        found = materials(plan)
        for component in ("servers", "spares", "network", "energy", "recovery"):
            yearly = math.fsum(one.usd_per_year for one in found.items if one.group == component)
            assert yearly == pytest.approx(plan.bill.usd_per_year_by_component.get(component, 0.0), rel=1e-12)

    def test_servers_stand_by_pool(self, plan: Plan) -> None:
        found = materials(plan)
        for group in plan.servers:
            rows = [one for one in found.items if one.pool == group.pool]
            counts = {one.group: one.quantity for one in rows}
            if group.sourcing == "buy":
                assert counts["servers"] == group.in_service
                assert counts.get("spares", 0) == group.spare
                assert counts["racks"] == group.racks
            else:
                assert counts["rented servers"] == group.servers

    def test_quantity_times_price_is_the_capital(self, plan: Plan) -> None:
        for one in materials(plan).items:
            if one.kind == "order":
                assert one.quantity * one.unit_price_usd == pytest.approx(one.capital_usd, rel=1e-12)

    def test_energy_is_the_plans_at_the_meter(self, plan: Plan) -> None:
        energy = math.fsum(one.quantity for one in materials(plan).items if one.group == "energy")
        assert energy == pytest.approx(plan.energy_kwh_per_year, rel=1e-9)

    def test_ranges_are_those_of_the_catalogue(self, old: Plan) -> None:
        found = materials(old)
        rows = {(one.table, one.id): one.row for one in old.catalog_rows}
        price = rows["purchase_prices", old.servers[0].accelerator]
        servers = item(found, "servers")
        assert (servers.unit_price_low_usd, servers.unit_price_high_usd) == (price["low_usd"], price["high_usd"])
        rack = rows["facility", "rack_hardware"]
        racks = item(found, "racks")
        assert (racks.unit_price_low_usd, racks.unit_price_high_usd) == (rack["low"], rack["high"])
        fabric = rows["fabrics", old.network[0].fabric]
        assert item(found, "network").unit_price_low_usd == pytest.approx(fabric["low_usd_per_accelerator"])
        assert item(found, "colocation").unit_price_high_usd == pytest.approx(
            item(found, "colocation").unit_price_usd + 12.0 * (160.0 - 137.5)
        )

    def test_own_prices_have_no_range_and_own_rows_have_theirs(self) -> None:
        quoted = item(materials(plan_named("volume-discounts")), "servers")
        assert quoted.trust == "user"
        assert quoted.unit_price_low_usd is None
        own = materials(plan_named("own-catalogue"))
        assert (item(own, "servers").unit_price_low_usd, item(own, "servers").unit_price_high_usd) == (38000.0, 50000.0)
        assert item(own, "cooling").unit_price_low_usd is None

    def test_a_type_in_two_pools_is_split_at_the_average_price(self, old: Plan) -> None:
        content = old.model_dump(mode="json", by_alias=True)
        first = content["servers"][0]
        second = {**first, "pool": "another", "cooling": "in_row", "in_service": 8, "spare": 0}
        first["in_service"] -= 8
        content["servers"].append(second)
        found = materials(Plan.model_validate_json(json.dumps(content)))
        rows = [one for one in found.items if one.group == "servers"]
        assert [one.quantity for one in rows] == [old.servers[0].in_service - 8.0, 8.0]
        price = next(one.unit_price_usd for one in old.bill.lines if one.component == "servers")
        assert {one.unit_price_usd for one in rows} == {price}
        assert cents(found.capital_usd) == cents(old.bill.capital_usd)

    def test_where_each_price_comes_from(self, plan: Plan) -> None:
        sources = {(one.source, one.as_of, one.trust) for one in plan.bill.lines}
        for one in materials(plan).items:
            assert (one.source, one.as_of, one.trust) in sources
            assert one.lead_time == LEAD_TIME


class TestFiles:
    """CSV and JSON."""

    def test_csv_columns_sum_to_the_cent(self, plan: Plan) -> None:
        *rows, total = table(bom_csv(materials(plan)))
        for column, wanted in (("capital_usd", plan.bill.capital_usd), ("usd_per_year", plan.bill.usd_per_year)):
            assert sum(Decimal(one[column]) for one in rows) == Decimal(total[column]) == cents(wanted)

    def test_json_holds_the_same(self, plan: Plan) -> None:
        found = json.loads(bom_json(materials(plan)))
        assert cents(found["capital_usd"]) == cents(plan.bill.capital_usd)
        assert cents(found["usd_per_year"]) == cents(plan.bill.usd_per_year)
        assert len(found["items"]) == len(materials(plan).items)

    def test_text_fits_and_names_every_item(self, plan: Plan) -> None:
        text = bom_text(materials(plan), 80)
        assert "Total" in text
        assert max(len(line) for line in [*text.splitlines(), *bill_text(plan).splitlines()]) <= 80

    def test_cents_are_shared_out(self) -> None:
        assert to_cents([0.004, 0.004, 0.004]) == [Decimal("0.01"), Decimal("0.00"), Decimal("0.00")]
        assert sum(to_cents([0.006, 0.006])) == Decimal("0.01")
        assert to_cents([]) == []


class TestByYear:
    """The annuity view and the cash view."""

    def test_both_views_sum_to_the_present_value(self, plan: Plan) -> None:
        found = flows(plan)
        wanted = plan.bill.usd_over_horizon
        assert cents(math.fsum(one.annuity_discounted_usd for one in found)) == cents(wanted)
        assert math.fsum(one.discounted_usd for one in found) == pytest.approx(wanted, rel=1e-9)

    def test_year_0_is_the_capital(self, plan: Plan) -> None:
        paid = math.fsum(one.cash_usd for one in flows(plan) if one.year == 0)
        assert cents(paid) == cents(plan.bill.capital_usd)

    def test_csv_columns_sum_to_the_cent(self, plan: Plan) -> None:
        *rows, total = table(bill_csv(plan))
        for column in ("cash_usd", "annuity_discounted_usd", "discounted_usd"):
            assert sum(Decimal(one[column]) for one in rows) == Decimal(total[column])
        assert Decimal(total["annuity_discounted_usd"]) == cents(plan.bill.usd_over_horizon)

    @pytest.mark.parametrize("horizon", [1.0, 4.5, 5.0, 10.0, 12.0, 17.5])
    def test_views_agree_over_any_horizon(self, old: Plan, horizon: float) -> None:
        plan = changed(old, horizon_years=horizon)
        found = flows(plan)
        annuity = math.fsum(one.annuity_discounted_usd for one in found)
        assert annuity == pytest.approx(plan.bill.usd_per_year * (1.0 - 1.08**-horizon) / 0.08, rel=1e-12)
        assert math.fsum(one.discounted_usd for one in found) == pytest.approx(annuity, rel=1e-9)
        servers = [one for one in found if one.component == "servers"]
        bought = math.fsum(one.cash_usd for one in servers)
        once = next(one.capital_usd for one in plan.bill.lines if one.component == "servers")
        assert bought == pytest.approx(once * math.ceil(horizon / 5.0))

    def test_replacement_falls_into_its_year(self, old: Plan) -> None:
        plan = changed(old, horizon_years=12.0)
        years = [one.year for one in flows(plan) if one.component == "servers" and one.cash_usd > 0.0]
        assert years == [0, 5, 10]
        # The last servers serve two of five years.
        left = sum(one.value_left_usd for one in flows(plan) if one.component == "servers")
        line = next(one for one in plan.bill.lines if one.component == "servers")
        assert left == pytest.approx(line.usd_per_year * (1 - 1.08**-3) / 0.08)

    def test_lives_are_read_off_the_annuity(self, old: Plan) -> None:
        lives = {one.component: life_years(one, 0.08) for one in old.bill.lines if one.capital_usd}
        assert lives == {"servers": 5.0, "spares": 5.0, "network": 5.0, "cooling": 15.0, "space": 5.0}
        line = next(one for one in old.bill.lines if one.component == "servers")
        assert life_years(line.model_copy(update={"usd_per_year": line.capital_usd / 4}), 0.0) == 4.0
        assert math.isinf(life_years(line.model_copy(update={"usd_per_year": 0.08 * line.capital_usd}), 0.08))
        assert purchases(math.inf, 50.0) == (0.0,)
        assert purchases(2.5, 5.0) == (0.0, 2.5)

    def test_costs_per_unit(self, plan: Plan) -> None:
        found = unit_costs(plan)
        assert found.usd_per_million_output_tokens == pytest.approx(plan.bill.usd_per_million_output_tokens, rel=1e-6)
        assert found.usd_per_million_total_tokens is not None
        assert found.usd_per_million_total_tokens < plan.bill.usd_per_million_output_tokens
        assert found.usd_per_hour == pytest.approx(plan.bill.usd_per_hour)
        assert found.usd_per_accelerator_hour_used is not None
        assert found.usd_per_accelerator_hour_used > found.usd_per_accelerator_hour_installed
        assert found.usd_present_value_no_residual >= found.usd_over_horizon
        assert json.loads(bill_json(plan))["unit_costs"]["usd_per_hour"] == found.usd_per_hour


class TestVerb:
    """``optimize report``."""

    def run(self, *args: object) -> Result:
        return CliRunner().invoke(app, ["report", *(str(one) for one in args)])

    def test_screen_and_old_prices(self) -> None:
        found = self.run(OLD_PLAN, "--today", "2026-09-01")
        assert found.exit_code == 0
        assert "To order" in found.stdout
        assert "per accelerator-hour used" in found.stdout
        assert "warning     prices older than 90 days" in found.stderr
        assert "gaudi3 x8: 2024-06" in found.stderr
        assert "warning" not in self.run(OLD_PLAN, "--today", "2023-12-31").stderr

    def test_files(self, tmp_path: Path) -> None:
        for name, first in (("bom.csv", "kind,"), ("bill.csv", "component,"), ("bom.json", "{"), ("bill.json", "{")):
            assert self.run(OLD_PLAN, "-o", tmp_path / name).exit_code == 0
            assert (tmp_path / name).read_text(encoding="utf-8").startswith(first)
            assert self.run(OLD_PLAN, "-o", tmp_path / name).exit_code == 0
        assert self.run(OLD_PLAN, "-o", tmp_path / "x.csv", "--table", "bill").exit_code == 0
        assert (tmp_path / "x.csv").read_bytes() == (tmp_path / "bill.csv").read_bytes()

    def test_refusals(self, tmp_path: Path) -> None:
        assert self.run(OLD_PLAN, "-o", tmp_path / "bom.xlsx").exit_code == 2
        (tmp_path / "bom.csv").write_text("mine\n", encoding="utf-8")
        assert self.run(OLD_PLAN, "-o", tmp_path / "bom.csv").exit_code == 2
        assert self.run(OLD_PLAN, "-o", tmp_path / "bom.csv", "--force").exit_code == 0
        assert self.run(tmp_path / "none.json").exit_code == 3
        (tmp_path / "no.json").write_text("{}", encoding="utf-8")
        refused = self.run(tmp_path / "no.json")
        assert refused.exit_code == 3
        assert "no plan" in refused.stderr
