"""Names, a planner's own rows, cheapest offers, and the tables that are shown."""

import pickle
import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import ValidationError

from optimizer.catalog import UnknownName, load_catalog
from optimizer.catalog.rows import Accelerator, Fabric, PurchasePrice, RentalOffer
from optimizer.catalog.show import KINDS, table
from optimizer.catalog.tables import read

CATALOG = load_catalog()
OWN = {
    "id": "x1",
    "generation": "hopper",
    "memory_gib": 64,
    "memory_bandwidth_gb_s": 2000,
    "fp16_tflops": 500,
    "scale_out_gb_s": 50,
    "pcie_gb_s": 64,
    "tdp_w": 500,
    "accelerators_per_server": 8,
    "accelerators_per_host": 8,
    "server_power_kw": 7,
    "server_rack_units": 8,
}


def test_every_alias_resolves() -> None:
    for row in read("aliases.csv"):
        resolver = CATALOG.resolve_model if row["kind"] == "model" else CATALOG.resolve_accelerator
        for spelling in (row["alias"], row["alias"].upper(), row["alias"].replace("-", "_")):
            assert resolver(spelling) == row["id"]


@pytest.mark.parametrize("name", [*CATALOG.models])
def test_every_model_goes_by_its_own_name(name: str) -> None:
    assert CATALOG.resolve_model(name.lower()) == name


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("meta-llama/Llama-3.1-70B-Instruct", "Llama-3.1-70B"),
        ("Qwen/Qwen2.5-72B-Instruct", "Qwen2.5-72B"),
        ("deepseek-ai/deepseek-v3", "DeepSeek-V3 / R1 / V3.1"),
        ("openai/gpt-oss-20b", "gpt-oss-20b"),
        ("dense-600b", "Dense-600B"),
    ],
)
def test_hugging_face_ids(name: str, model: str) -> None:
    assert CATALOG.resolve_model(name) == model


def test_unknown_names_give_the_nearest() -> None:
    with pytest.raises(UnknownName) as raised:
        CATALOG.resolve_accelerator("h100")
    assert set(raised.value.nearest) == {"h100-80gb-sxm", "h100-80gb-pcie", "h100-nvl-94gb"}
    assert "'h100'" in str(raised.value)
    assert isinstance(raised.value, KeyError)
    with pytest.raises(UnknownName) as raised:
        CATALOG.resolve_model("Llama-3.1-71B")
    assert raised.value.nearest[0] == "Llama-3.1-70B"
    with pytest.raises(UnknownName) as raised:
        CATALOG.resolve("cooling", "d2c")
    assert raised.value.nearest[0] == "d2c_1p"
    assert CATALOG.resolve("schemes", "W8A8-FP8") == "w8a8-fp8"


def test_own_rows_override_and_extend() -> None:
    h100 = CATALOG.accelerators["h100-80gb-sxm"]
    mine = h100.model_copy(update={"server_power_kw": 9.0, "trust": "user"})
    other = Accelerator.model_validate(OWN)
    price = PurchasePrice(accelerator="x1", accelerators=8, low_usd=9e4, typical_usd=1e5, high_usd=1.1e5)
    catalog = CATALOG.with_rows(accelerators=(mine, other), purchase_prices=(price,))
    assert catalog.accelerators["h100-80gb-sxm"].server_power_kw == 9.0
    assert catalog.accelerators["x1"].trust == "user"
    assert catalog.resolve_accelerator("X1") == "x1"
    assert catalog.purchase_prices["x1"].typical_usd_per_accelerator == 12_500
    assert len(catalog.accelerators) == len(CATALOG.accelerators) + 1
    # The packaged catalogue is untouched.
    assert CATALOG.accelerators["h100-80gb-sxm"].server_power_kw == 10.2
    assert "x1" not in CATALOG.accelerators


@pytest.mark.parametrize(
    "change",
    [
        {"memory_gib": 0},
        {"memory_gib": float("inf")},
        {"memory_gib": "64"},
        {"memory_gb": 64},
        {"accelerators_per_host": 3},
        {"scale_up_domain": 8},
        {"generation": "pascal"},
        {"as_of": "last week"},
    ],
)
def test_bad_own_rows_are_refused(change: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Accelerator.model_validate(OWN | change)


def test_rows_are_frozen() -> None:
    with pytest.raises(ValidationError):
        CATALOG.accelerators["l4"].tdp_w = 1.0


def test_cheapest_offers_are_the_cheapest_and_bookable() -> None:
    offers = CATALOG.cheapest_offers()
    assert list(offers) == sorted(offers)
    for (accelerator, count, term), best in offers.items():
        price = best.price_usd_per_accelerator_hour(term)
        assert price is not None
        for offer in CATALOG.rental_offers.values():
            other = offer.price_usd_per_accelerator_hour(term)
            same = (offer.accelerator, offer.accelerators) == (accelerator, count)
            if same and offer.price_class == "list" and offer.is_bookable and other is not None:
                assert price <= other
        assert best.price_class == "list"
        assert best.is_bookable
    assert not any("average" in offer.instance for offer in offers.values())


def test_other_classes_on_request() -> None:
    key = ("a100-40gb-sxm", 8, "reserved_3yr")
    assert key not in CATALOG.cheapest_offers()
    assert key in CATALOG.cheapest_offers(("history",))
    market = CATALOG.cheapest_offers(("marketplace_or_community",))
    assert market["h100-80gb-sxm", 1, "on_demand"].provider == "RunPod"


def test_an_own_offer_wins_over_cheaper_list_prices() -> None:
    mine = RentalOffer(
        id="us/contract/h100",
        provider="us",
        accelerator="h100-80gb-sxm",
        accelerators=8,
        on_demand_usd_per_accelerator_hour=9.0,
    )
    offers = CATALOG.with_rows(rental_offers=(mine,)).cheapest_offers()
    assert offers["h100-80gb-sxm", 8, "on_demand"] is mine


def test_an_offer_without_a_price_is_refused() -> None:
    with pytest.raises(ValidationError):
        RentalOffer(id="a", provider="a", accelerator="l4", accelerators=1)


def test_fabric_technologies_and_speeds() -> None:
    assert {fabric.technology for fabric in CATALOG.fabric_for(50)} == {"infiniband"}
    ethernet = CATALOG.fabric_for(50, "ethernet")
    assert ethernet[1].typical_usd_per_accelerator == 2600
    assert CATALOG.fabric_for(40)[0].scale_out_gb_s == 50
    doubled = CATALOG.fabric_for(200)
    assert doubled[1].typical_usd_per_accelerator == 2 * CATALOG.fabric_for(100)[1].typical_usd_per_accelerator
    assert doubled[1].trust == "assumed"
    with pytest.raises(UnknownName):
        CATALOG.fabric_for(50, "token ring")  # type: ignore[arg-type]


def test_an_own_fabric_of_one_tier_stands_alone() -> None:
    mine = Fabric(
        id="mine",
        scale_out_gb_s=60,
        tiers=1,
        max_accelerators=64,
        low_usd_per_accelerator=1,
        typical_usd_per_accelerator=1,
        high_usd_per_accelerator=1,
        power_w_per_accelerator=1,
    )
    assert CATALOG.with_rows(fabrics=(mine,)).fabric_for(60) == (mine,)


@pytest.mark.parametrize("kind", KINDS)
def test_tables_to_show(kind: str) -> None:
    columns, rows = table(CATALOG, kind)
    assert columns[-4:] == ("source", "date", "trust", "confidence")
    assert rows
    for row in rows:
        assert len(row) == len(columns)
        assert all(cell is None or isinstance(cell, str | int | float) for cell in row)


def test_unknown_table() -> None:
    with pytest.raises(UnknownName) as raised:
        table(CATALOG, "acelerators")
    assert raised.value.nearest[0] == "accelerators"


def test_catalog_travels_to_another_process() -> None:
    copy = pickle.loads(pickle.dumps(CATALOG))
    assert copy.accelerators["l4"] == CATALOG.accelerators["l4"]


def test_packaged_text_names_no_machine() -> None:
    package = Path(sys.modules["optimizer.catalog"].__file__ or "").parent
    for file in sorted(package.rglob("*")):
        if file.suffix in {".py", ".csv"}:
            words = file.read_text(encoding="utf-8")
            assert not any(word in words for word in ("../shared", "/work/", "/tmp/", "/home/")), file


def test_loading_reads_only_what_is_asked() -> None:
    code = (
        "from optimizer.catalog import load_catalog, tables\n"
        "import sys\n"
        "load_catalog().accelerators['l4']\n"
        "assert tables.read.cache_info().currsize == 1\n"
        "assert 'numpy' not in sys.modules and 'pyomo' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
