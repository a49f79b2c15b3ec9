"""The bill: one module a component of cost. The same terms make the program's objective and the plan's bill."""

from collections.abc import Callable
from typing import Final

from optimizer.costs import (
    cooling,
    energy,
    environment,
    insurance,
    maintenance,
    network,
    owned,
    rent,
    servers,
    services,
    space,
    staff,
)
from optimizer.costs.over_time import timed
from optimizer.costs.term import Term
from optimizer.setting import Setting


def _timed(of_setting: Callable[[Setting], list[Term]]) -> Callable[[Setting], list[Term]]:
    """The same terms with what tax, residual values and later prices make of them."""
    return lambda setting: [timed(term, setting.instance.economics) for term in of_setting(setting)]


#: Components whose terms follow from the setting alone; ``recovery`` also needs the schemes
#: (``optimizer.costs.recovery``).
SETTING_COMPONENTS: Final[tuple[tuple[str, Callable[[Setting], list[Term]]], ...]] = (
    (servers.COMPONENT, _timed(servers.terms)),
    (network.COMPONENT, _timed(network.terms)),
    (cooling.COMPONENT, _timed(cooling.terms)),
    (space.COMPONENT, _timed(space.terms)),
    (energy.COMPONENT, _timed(energy.terms)),
    (environment.CARBON, _timed(environment.carbon_terms)),
    (environment.WATER, _timed(environment.water_terms)),
    (maintenance.COMPONENT, _timed(maintenance.terms)),
    (staff.COMPONENT, _timed(staff.terms)),
    (insurance.COMPONENT, _timed(insurance.terms)),
    (services.COMPONENT, _timed(services.terms)),
    (rent.COMPONENT, _timed(rent.terms)),
)

#: Terms that belong to components above: what stands is kept up and replaced within them.
SHARED_TERMS: Final[tuple[Callable[[Setting], list[Term]], ...]] = (_timed(owned.terms),)


def setting_terms(setting: Setting) -> list[Term]:
    """Every term that follows from the setting alone, in the order of the bill."""
    result = [term for _, component in SETTING_COMPONENTS for term in component(setting)]
    return result + [term for shared in SHARED_TERMS for term in shared(setting)]


#: Names of all components, in the order of the bill. ``spares`` is split off from ``servers`` when the bill is written.
COST_COMPONENTS: Final = (*(name for name, _ in SETTING_COMPONENTS), "recovery")
BILL_COMPONENTS: Final = ("servers", "spares", *COST_COMPONENTS[1:])
