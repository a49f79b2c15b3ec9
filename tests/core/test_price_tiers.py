"""Quantity discounts and sizes of fabrics: the program's least cost against a loop over whole counts."""

import pytest

from optimizer.costs import network, servers
from optimizer.costs.servers import tier_prices
from optimizer.costs.term import capital_recovery_factor
from optimizer.offer import cheaper_step
from optimizer.program_data import ProgramData
from optimizer.setting import ServerType
from optimizer.units import HOURS_PER_YEAR
from tests.core.hand import bought, data_of, instance, offered, price, rented, server_type, setting_of, solve
from tests.core.steps import fabrics

STEPS = ((4, 0.1), (8, 0.25), (16, 0.5))
LIST_USD = 1000.0
#: Capital to USD per hour.
HOURLY = capital_recovery_factor(0.08, 5.0) / HOURS_PER_YEAR


def spent(of: ServerType, count: int) -> float:
    """What ``count`` servers cost by the words of the discount, USD."""
    if of.discount_kind == "all_units":
        share = max((d for first, d in of.discounts if count >= first), default=0.0)
        return count * LIST_USD * (1.0 - share)
    return sum(
        LIST_USD * (1.0 - max((d for first, d in of.discounts if number >= first), default=0.0))
        for number in range(1, count + 1)
    )


def program(of: ServerType, needed: int, *, most: int = 40) -> ProgramData:
    """One server a replica; servers are all that costs."""
    pools = [bought("air", of)]
    setting = setting_of(instance(), pools)
    deployments = [offered("d", of)]
    demand = (float(needed),)
    return data_of(setting.instance, pools, deployments, servers.terms(setting), demand=demand, most_servers=most)


@pytest.mark.parametrize("needed", [1, 2, 3, 4, 5, 7, 8, 9, 10, 11, 12, 15, 16, 17, 30])
@pytest.mark.parametrize("kind", ["all_units", "incremental"])
def test_discounts_against_a_loop(kind: str, needed: int) -> None:
    of = server_type(usd=LIST_USD, discounts=STEPS, kind="all_units" if kind == "all_units" else "incremental")
    best = min(spent(of, count) for count in range(needed, 41))
    found = solve(program(of, needed))
    assert found is not None
    assert found.usd_per_hour == pytest.approx(best * HOURLY, rel=1e-9)
    assert spent(of, round(found.values["Servers[air]"])) == pytest.approx(best)


@pytest.mark.parametrize(("needed", "bought_servers"), [(6, 6), (7, 8), (10, 10), (11, 16), (15, 16)])
def test_more_than_needed_is_bought_where_the_next_step_is_cheaper(needed: int, bought_servers: int) -> None:
    """Seven at 10 % off cost 6,300, eight at 25 % off 6,000; eleven 8,250, sixteen at half price 8,000."""
    found = solve(program(server_type(usd=LIST_USD, discounts=STEPS), needed))
    assert found is not None
    assert found.values["Servers[air]"] == bought_servers


@pytest.mark.parametrize("most", [3, 7, 8, 15])
def test_steps_out_of_reach_are_left_out(most: int) -> None:
    of = server_type(usd=LIST_USD, discounts=STEPS)
    data = program(of, 3, most=most)
    assert [first for first, _ in data.server_tiers.values()] == [1, *(first for first, _ in STEPS if first <= most)]
    assert max(last for _, last in data.server_tiers.values()) == most
    best = min(spent(of, count) for count in range(3, most + 1))
    found = solve(data)
    assert found is not None
    assert found.usd_per_hour == pytest.approx(best * HOURLY, rel=1e-9)


def test_twelve_steps() -> None:
    """More than ten steps: numbers of two digits come after those of one."""
    steps = tuple((count, 0.02 * count) for count in range(2, 14))
    of = server_type(usd=LIST_USD, discounts=steps)
    for needed in (9, 10, 11, 12, 13):
        found = solve(program(of, needed, most=20))
        assert found is not None
        best = min(spent(of, count) for count in range(needed, 21))
        assert found.usd_per_hour == pytest.approx(best * HOURLY, rel=1e-9)


def test_prices_of_tiers() -> None:
    all_units = tier_prices(server_type(usd=LIST_USD, discounts=STEPS))
    assert all_units == ((1, 1000.0, 0.0), (4, 900.0, 0.0), (8, 750.0, 0.0), (16, 500.0, 0.0))
    incremental = tier_prices(server_type(usd=LIST_USD, discounts=STEPS, kind="incremental"))
    # Three at list price are 100 dearer each than the line of the second tier, seven 150 each more, fifteen 250.
    assert incremental == ((1, 1000.0, 0.0), (4, 900.0, 300.0), (8, 750.0, 1350.0), (16, 500.0, 5100.0))
    assert tier_prices(server_type(usd=None, rent={"on_demand": 1.0})) == ()


@pytest.mark.parametrize("count", range(1, 20))
@pytest.mark.parametrize("kind", ["all_units", "incremental"])
def test_no_count_beyond_the_cheaper_step_is_ever_worth_buying(kind: str, count: int) -> None:
    of = server_type(usd=LIST_USD, discounts=STEPS, kind="all_units" if kind == "all_units" else "incremental")
    bound = max(count, cheaper_step(of, count))
    for needed in range(1, count + 1):
        within = min(spent(of, n) for n in range(needed, bound + 1))
        assert min(spent(of, n) for n in range(needed, 60)) == pytest.approx(within)


def test_discounts_count_all_pools_of_a_type_together() -> None:
    of = server_type(usd=LIST_USD, discounts=((4, 0.5),))
    classes = [
        {"name": name, "request": {"input_tokens": 9, "output_tokens": 9}, "demand": {"requests_per_s": 2}}
        for name in ("x", "y")
    ]
    given = instance(workload={"classes": classes}, site={"racks": 2})
    pools = [bought("one", of, per_rack=2), bought("two", of, per_rack=2)]
    deployments = [offered("x", of, class_index=0), offered("y", of, class_index=1)]
    terms = servers.terms(setting_of(given, pools))
    found = solve(data_of(given, pools, deployments, terms, demand=(2.0, 2.0)))
    assert found is not None
    assert found.usd_per_hour == pytest.approx(4 * 500.0 * HOURLY)


@pytest.mark.parametrize("needed", [1, 2, 3, 4, 5, 6])
def test_fabric_is_priced_by_the_size_that_holds_all_bought_accelerators(needed: int) -> None:
    """Up to 16 accelerators 1 each, up to 32 2 each, beyond 3 each: all of them at the price of the size reached."""
    of = server_type()
    pools = [bought("air", of)]
    setting = setting_of(instance(), pools, fabrics=fabrics())
    terms = network.terms(setting)
    data = data_of(setting.instance, pools, [offered("d", of)], terms, demand=(float(needed),), fabrics=fabrics())
    found = solve(data)
    assert found is not None
    count = 8 * needed
    usd = count * (1 if count <= 16 else 2 if count <= 32 else 3)
    assert found.usd_per_hour == pytest.approx(usd * HOURLY)


def test_fabrics_are_shared_by_types_of_one_link_speed_only() -> None:
    classes = [
        {"name": name, "request": {"input_tokens": 9, "output_tokens": 9}, "demand": {"requests_per_s": 2}}
        for name in ("x", "y")
    ]
    given = instance(workload={"classes": classes})
    for speed, usd in ((50.0, 32 * 2), (25.0, 16 * 1 + 16 * 10)):
        one, two = server_type("one"), server_type("two", speed=speed)
        pools = [bought("one", one), bought("two", two)]
        slow = {
            25.0: tuple(
                row.model_copy(update={"id": f"slow-{row.id}", "typical_usd_per_accelerator": 10.0 * row.tiers})
                for row in fabrics(25.0)[25.0]
            )
        }
        sizes = fabrics() if speed == 50.0 else {**fabrics(), **slow}
        deployments = [offered("x", one, class_index=0), offered("y", two, class_index=1)]
        terms = network.terms(setting_of(given, pools, fabrics=sizes))
        found = solve(data_of(given, pools, deployments, terms, demand=(2.0, 2.0), fabrics=sizes))
        assert found is not None
        assert found.usd_per_hour == pytest.approx(usd * HOURLY)


def test_rented_servers_take_no_place_in_a_fabric() -> None:
    of = server_type(rent={"on_demand": 1.0})
    pools = [rented("rent", of)]
    terms = [*network.terms(setting_of(instance(), pools, fabrics=fabrics())), price(("Servers", "rent"), 1.0)]
    data = data_of(instance(), pools, [offered("d", of)], terms, fabrics=fabrics())
    found = solve(data)
    assert found is not None
    assert found.usd_per_hour == pytest.approx(10.0)
    assert not data.fabric_tiers
