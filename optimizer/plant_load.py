"""How full a plan runs its own plants, held against the load that its PUE was taken at (docs/method.md section 6)."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from optimizer.climate import site_climate
from optimizer.costs import SETTING_COMPONENTS, energy, environment
from optimizer.costs.term import QuantityKey
from optimizer.program_data import ProgramData
from optimizer.setting import plant_pue
from optimizer.units import HOURS_PER_YEAR

#: A bill that the own load would change by less than this share is not spoken of. Cooling options often lie closer
#: than half a percent to each other, so it is small.
MATERIAL = 0.001
#: Components that PUE is part of.
_OF_PUE = (energy.COMPONENT, environment.CARBON)
#: Loads below the field's least are taken at it.
_LEAST = 0.1


@dataclass(frozen=True, slots=True)
class OwnLoad:
    """Load of each cooling option by id, mean over peak of its servers, and what the bill would be at it, USD/year."""

    fractions: Mapping[str, float]
    pue_mean: Mapping[str, float]
    usd_per_year_more: float


def load_fractions(data: ProgramData, servers: Mapping[str, int], it_kwh: Mapping[str, float]) -> dict[str, float]:
    """Cooling option -> mean IT power of the servers under it over the most that they draw, spares included.

    That most is what plants are sized for. ``it_kwh``: IT energy in a year by pool of the hall.
    """
    mean: dict[str, float] = {}
    most: dict[str, float] = {}
    for q, kwh in it_kwh.items():
        cooling = data.pools[q].cooling
        assert cooling is not None
        mean[cooling.id] = mean.get(cooling.id, 0.0) + kwh / HOURS_PER_YEAR
        most[cooling.id] = most.get(cooling.id, 0.0) + servers[q] * data.pools[q].server_kw
    return {key: mean[key] / most[key] for key in sorted(mean)}


def own_load(
    data: ProgramData, fractions: Mapping[str, float], quantities: Mapping[QuantityKey, float]
) -> OwnLoad | None:
    """The same fleet billed at the PUE of its own load; None where nothing stands in the hall."""
    if not fractions:
        return None
    setting = data.setting
    climate = site_climate(setting.instance.site, setting.catalog)
    pues = {
        key: plant_pue(setting.catalog.cooling[key], climate, min(1.0, max(_LEAST, load)))[0]
        for key, load in fractions.items()
    }
    # PUE is in no other term, and what no server stands in costs nothing.
    pools = tuple(
        replace(pool, pue_mean=pues[pool.cooling.id])
        for pool in setting.pools
        if pool.cooling is not None and quantities.get(("Servers", pool.id), 0.0)
    )
    moved = replace(setting, pools=pools)
    before = {(term.component, term.item): term.usd_per_year for term in data.terms if term.component in _OF_PUE}
    more = math.fsum(
        (term.usd_per_year - before[term.component, term.item]) * quantities.get(term.quantity, 0.0)
        for name, of_setting in SETTING_COMPONENTS
        if name in _OF_PUE
        for term in of_setting(moved)
        if (term.component, term.item) in before
    )
    return OwnLoad(fractions, pues, more)


def load_messages(data: ProgramData, own: OwnLoad | None, usd_per_year: float) -> tuple[str, ...]:
    """What the plan's own load does to its bill, where that matters."""
    if own is None or not usd_per_year or abs(own.usd_per_year_more) < MATERIAL * usd_per_year:
        return ()
    stated = data.setting.instance.site.plant_load_fraction
    before = {pool.cooling.id: pool.pue_mean for pool in data.pools.values() if pool.cooling is not None}
    parts = ", ".join(
        f"{key} at {load:.0%} of its size (mean PUE {own.pue_mean[key]:.3f}, billed at {before[key]:.3f})"
        for key, load in own.fractions.items()
    )
    share = own.usd_per_year_more / usd_per_year
    told = (
        f"plants are billed as if they ran at {stated:.0%} of their size (site.plant_load_fraction); this plan runs "
        f"{parts}: {own.usd_per_year_more:+,.0f} USD a year ({share:+.2%}); state its own load and solve again"
    )
    return (told,)
