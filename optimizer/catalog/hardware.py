"""Accelerators, what they cost to buy or rent, and the fabric that joins them."""

from typing import Literal, Self

from pydantic import model_validator

from optimizer.catalog.base import Generation, Row, quantity, text

Compute = Literal["fp16", "fp8", "int8", "fp4", "int4"]
Term = Literal["on_demand", "reserved_1yr", "reserved_3yr", "spot"]
PriceClass = Literal["list", "marketplace_or_community", "history"]
Technology = Literal["infiniband", "ethernet"]

TERMS: tuple[Term, ...] = ("on_demand", "reserved_1yr", "reserved_3yr", "spot")


class Accelerator(Row):
    """One accelerator and the server (or rack) it is bought in. Rates are dense, per accelerator."""

    id: str = text("catalogue id")
    vendor: str = text("maker", "")
    name: str = text("name in print", "")
    generation: Generation = text("architecture generation: decides which number formats the matrix units know")
    memory_gib: float = quantity("device memory that the driver exposes", "GiB", gt=0)
    memory_label_gb: float | None = quantity("figure on the vendor's label, for recognition only", "GB", None, gt=0)
    memory_gib_basis: str = text("driver (seen), driver-unverified, nominal (label taken as GiB) or user", "user")
    memory_bandwidth_gb_s: float = quantity("peak device memory bandwidth", "GB/s", gt=0)
    fp16_tflops: float = quantity("FP16/BF16 matrix rate, FP32 accumulation", "TFLOP/s", gt=0)
    fp8_tflops: float | None = quantity("FP8 matrix rate; none: no hardware support", "TFLOP/s", None, gt=0)
    int8_tops: float | None = quantity("INT8 matrix rate; none: no hardware support", "TOP/s", None, gt=0)
    fp4_tflops: float | None = quantity("FP4 matrix rate; none: no hardware support", "TFLOP/s", None, gt=0)
    int4_tops: float | None = quantity("INT4 matrix rate; none: no hardware support", "TOP/s", None, gt=0)
    scale_up_link: str = text("kind of link inside the scale-up domain", "")
    scale_up_gb_s: float | None = quantity(
        "one way, to all peers of the domain together; none: PCIe", "GB/s", None, gt=0
    )
    scale_up_pair_gb_s: float | None = quantity(
        "one way, to a single peer; below scale_up_gb_s on meshes", "GB/s", None, gt=0
    )
    scale_up_domain: int = quantity("accelerators in a domain; 1: no link, 2: bridge pairs", "accelerators", 1, ge=1)
    scale_out_gb_s: float = quantity("usual network interface, one way", "GB/s", gt=0)
    pcie_gb_s: float = quantity("host link, one way", "GB/s", gt=0)
    tdp_w: float = quantity("board power limit", "W", gt=0)
    accelerators_per_server: int = quantity("accelerators in the unit one buys (72 for a rack)", "accelerators", ge=1)
    accelerators_per_host: int = quantity("accelerators under one operating system", "accelerators", ge=1)
    server_power_kw: float = quantity("maximum of the whole unit at the plug, without PUE or switches", "kW", gt=0)
    server_power_basis: str = text("vendor, vendor-approx, derived, analogy, estimate or user", "user")
    server_rack_units: int = quantity("height of the unit", "U", ge=1)
    release_year: int = quantity("year of first shipment", "year", 2026, ge=2010, le=2100)
    availability: Literal["current", "previous", "used_only", "cloud_only", "region_restricted", "past"] = text(
        "whether it can be bought today; past: known for validation and for fleets that stand, without a price",
        "current",
    )
    liquid_cooling: Literal["required", "option", "no"] = text("whether the server takes cold plates", "option")

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.accelerators_per_server % self.accelerators_per_host:
            raise ValueError("accelerators_per_server must be a multiple of accelerators_per_host")
        if self.scale_up_domain > 1 and self.scale_up_gb_s is None:
            raise ValueError("a scale-up domain of several accelerators needs scale_up_gb_s")
        return self

    def matrix_tflops(self, compute: Compute) -> float | None:
        """Dense rate of the matrix units in ``compute`` (TFLOP/s or TOP/s), None without hardware support."""
        rates = {
            "fp16": self.fp16_tflops,
            "fp8": self.fp8_tflops,
            "int8": self.int8_tops,
            "fp4": self.fp4_tflops,
            "int4": self.int4_tops,
        }
        return rates[compute]


class PurchasePrice(Row):
    """Price before tax, shipping and support; a server is complete with host and usually network interfaces."""

    accelerator: str = text("accelerator id")
    unit: Literal["server", "rack", "card"] = text("what is sold; a card or module needs a server around it", "server")
    accelerators: int = quantity("accelerators in the unit", "accelerators", ge=1)
    low_usd: float = quantity("low end of what is asked", "USD", gt=0)
    typical_usd: float = quantity("typical price", "USD", gt=0)
    high_usd: float = quantity("high end of what is asked", "USD", gt=0)

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if not self.low_usd <= self.typical_usd <= self.high_usd:
            raise ValueError("low_usd <= typical_usd <= high_usd must hold")
        return self

    @property
    def typical_usd_per_accelerator(self) -> float:
        """Typical price divided by the accelerators of the unit (USD)."""
        return self.typical_usd / self.accelerators


class RentalOffer(Row):
    """What a provider asks for one accelerator and hour, Linux, by term of commitment."""

    id: str = text("provider/instance/accelerator")
    provider: str = text("who rents it out")
    instance: str = text("the provider's name of the shape", "")
    accelerator: str = text("accelerator id")
    accelerators: int = quantity("accelerators in the instance", "accelerators", ge=1)
    on_demand_usd_per_accelerator_hour: float | None = quantity("no commitment", "USD/h", None, gt=0)
    reserved_1yr_usd_per_accelerator_hour: float | None = quantity(
        "one-year commitment, paid always", "USD/h", None, gt=0
    )
    reserved_3yr_usd_per_accelerator_hour: float | None = quantity(
        "three-year commitment, paid always", "USD/h", None, gt=0
    )
    spot_usd_per_accelerator_hour: float | None = quantity("may be withdrawn at any time", "USD/h", None, gt=0)
    region: str = text("where the price holds", "")
    price_class: PriceClass = text("list, marketplace_or_community (no service promise) or history", "list")
    is_bookable: bool = text("false: history, an average over listings, or a discounted or outdated figure", True)

    @model_validator(mode="after")
    def _priced(self) -> Self:
        if all(self.price_usd_per_accelerator_hour(term) is None for term in TERMS):
            raise ValueError("an offer needs a price for at least one term")
        return self

    def price_usd_per_accelerator_hour(self, term: Term) -> float | None:
        """Price of ``term`` (USD per accelerator and hour), None where the provider states none."""
        prices = {
            "on_demand": self.on_demand_usd_per_accelerator_hour,
            "reserved_1yr": self.reserved_1yr_usd_per_accelerator_hour,
            "reserved_3yr": self.reserved_3yr_usd_per_accelerator_hour,
            "spot": self.spot_usd_per_accelerator_hour,
        }
        return prices[term]


class Fabric(Row):
    """Non-blocking scale-out network: switches, cables and optics per accelerator, without the interface card."""

    id: str = text("catalogue id")
    name: str = text("name in print", "")
    technology: Technology = text("infiniband or ethernet", "ethernet")
    scale_out_gb_s: float = quantity("speed of one accelerator's link, one way", "GB/s", gt=0)
    tiers: int = quantity("switch tiers", "tiers", ge=1, le=3)
    max_accelerators: int = quantity("largest cluster that the tiers reach", "accelerators", ge=1)
    low_usd_per_accelerator: float = quantity("low end", "USD", gt=0)
    typical_usd_per_accelerator: float = quantity("typical price", "USD", gt=0)
    high_usd_per_accelerator: float = quantity("high end", "USD", gt=0)
    power_w_per_accelerator: float = quantity("switches and optics", "W", gt=0)

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if not self.low_usd_per_accelerator <= self.typical_usd_per_accelerator <= self.high_usd_per_accelerator:
            raise ValueError("low <= typical <= high must hold for usd_per_accelerator")
        return self
