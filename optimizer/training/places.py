"""Places where jobs may run: the sites of bought servers, and the providers of rented ones."""

from dataclasses import dataclass
from itertools import combinations
from typing import Final, Literal, get_args

from optimizer.catalog import Catalog
from optimizer.catalog.rows import Accelerator
from optimizer.instance.model import Instance
from optimizer.instance.site import NamedSite, Site
from optimizer.performance.training import TrainingAccelerator
from optimizer.setting import Pool, Setting, build_setting

#: Halls that bought servers may stand in: rented by the kW, or built.
Hall = Literal["colocation", "own_build"]
#: Name of the place of an instance that states one ``site`` only, and of what is rented.
ONE_SITE: Final = "site"
RENTED: Final = "rented"
#: Light in fibre, one way; routes are longer than the straight line by 1.2 to 1.5.
S_PER_KM: Final = 5e-6


@dataclass(frozen=True, slots=True)
class Place:
    """A site with its own weather, power and electricity price; or, for ``RENTED``, whatever is rented.

    Where either hall may be used a site is two places of one name, in colocation and in a hall of its own:
    ``is_choice``. Bought servers of a site all stand in one of them.
    """

    name: str
    setting: Setting
    site: Site
    is_choice: bool = False

    @property
    def hall(self) -> Hall:
        """Hall of bought servers."""
        return "own_build" if self.site.facility == "own_build" else "colocation"

    @property
    def pools(self) -> tuple[Pool, ...]:
        """Pools that stand here. Owned servers of `inventory` are for serving alone."""
        rented = self.name == RENTED
        return tuple(pool for pool in self.setting.pools if (not pool.in_hall if rented else pool.is_bought))


@dataclass(frozen=True, slots=True)
class SiteGroup:
    """Sites that train together: the slowest link among them decides.

    ``gbit_per_s`` is what each site can send at once, one way; ``km`` the longest link of the ring or mesh.
    """

    sites: tuple[str, ...]
    gbit_per_s: float
    km: float


def places_of(instance: Instance, catalog: Catalog) -> tuple[Place, ...]:
    """The sites in the order of the instance, each in every hall that may be used; then the rented place."""
    sites: tuple[Site, ...] = instance.sites or (instance.site,)
    found = []
    for site in sites:
        name = site.name if isinstance(site, NamedSite) else ONE_SITE
        either = site.facility == "cheaper"
        for hall in get_args(Hall) if either else (site.facility,):
            plain = Site(**{key: getattr(site, key) for key in Site.model_fields} | {"facility": hall})
            setting = build_setting(instance.model_copy(update={"site": plain}), catalog)
            found.append(Place(name, setting, plain, either))
    if any(way != "buy" for way in instance.choices.sourcing):
        found.append(Place(RENTED, found[0].setting, found[0].site))
    return tuple(found)


def groups_of(instance: Instance) -> tuple[SiteGroup, ...]:
    """Every set of two sites or more whose members are all linked to each other."""
    links = {frozenset(one.between): one for one in instance.wan_links}
    names = [one.name for one in instance.sites]
    found = []
    for size in range(2, len(names) + 1):
        for chosen in combinations(names, size):
            pairs = [links.get(frozenset(pair)) for pair in combinations(chosen, 2)]
            if all(pair is not None for pair in pairs):
                known = [pair for pair in pairs if pair is not None]
                found.append(SiteGroup(chosen, min(one.gbit_per_s for one in known), max(one.km for one in known)))
    return tuple(found)


def training_accelerator(row: Accelerator) -> TrainingAccelerator:
    """What the step-time model needs of a catalogue row."""
    return TrainingAccelerator(
        id=row.id,
        generation=row.generation,
        memory_gib=row.memory_gib,
        memory_bandwidth_gb_s=row.memory_bandwidth_gb_s,
        fp16_tflops=row.fp16_tflops,
        fp8_tflops=row.fp8_tflops or 0.0,
        fp4_tflops=row.fp4_tflops or 0.0,
        scale_up_gb_s=row.scale_up_gb_s or 0.0,
        scale_up_domain=row.scale_up_domain,
        scale_out_gb_s=row.scale_out_gb_s,
        pcie_gb_s=row.pcie_gb_s,
    )
