"""Weather of a site: that of a packaged one, or the planner's own."""

from collections import Counter

from optimizer.catalog import Catalog
from optimizer.catalog.rows import Climate
from optimizer.instance.site import Site


def site_climate(site: Site, catalog: Catalog) -> Climate:
    """Hours by temperature at a site; own hours of a year are counted by their value, so no bin blurs them."""
    base, own = catalog.climates[site.climate], site.climate_bins
    if own is None:
        return base
    if own.dry_bulb_c is not None and own.wet_bulb_c is not None:
        dry, wet = Counter(own.dry_bulb_c), Counter(own.wet_bulb_c)
        middles = tuple(sorted({*dry, *wet}))
        hours = [tuple(float(count[one]) for one in middles) for count in (dry, wet)]
    else:
        middles = own.temperature_c or ()
        hours = [own.dry_bulb_hours or (), own.wet_bulb_hours or ()]
    return base.model_copy(
        update={
            "bin_mid_c": middles,
            "dry_bulb_hours": hours[0],
            "wet_bulb_hours": hours[1],
            "coincident_wet_bulb_c": (),
            "source": "stated by the user",
        }
    )
