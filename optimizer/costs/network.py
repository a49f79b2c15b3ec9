"""Network: switches, cables and optics of bought accelerators; a step function of how many of them share a fabric."""

from optimizer.catalog.rows import Fabric
from optimizer.costs.term import Term, capital, capital_recovery_factor
from optimizer.setting import Setting

COMPONENT = "network"


def fabric_usd(setting: Setting, fabric: Fabric) -> float:
    """Price per accelerator (USD) at the instance's price level."""
    return {
        "low": fabric.low_usd_per_accelerator,
        "typical": fabric.typical_usd_per_accelerator,
        "high": fabric.high_usd_per_accelerator,
    }[setting.instance.economics.price_level]


def terms(setting: Setting) -> list[Term]:
    """Price per accelerator of the tier that the cluster's size falls into, as an annuity over the network's life."""
    economics = setting.instance.economics
    annuity = ("annuity", capital_recovery_factor(economics.discount_rate, economics.network_life_years))
    return [
        capital(
            COMPONENT,
            fabric.name or fabric.id,
            ("FabricAccelerators", fabric.id),
            "accelerators",
            fabric_usd(setting, fabric),
            annuity,
            (fabric.source, fabric.as_of, fabric.trust),
        )
        for fabrics in setting.fabrics.values()
        for fabric in fabrics
    ]
