"""The bill: one module a component of cost. The same terms make the program's objective and the plan's bill."""

from collections.abc import Callable
from typing import Final

from optimizer.costs import cooling, energy, environment, maintenance, network, owned, rent, servers, space
from optimizer.costs.term import Term
from optimizer.setting import Setting

#: Components whose terms follow from the setting alone; ``recovery`` also needs the schemes
#: (``optimizer.costs.recovery``).
SETTING_COMPONENTS: Final[tuple[tuple[str, Callable[[Setting], list[Term]]], ...]] = (
    (servers.COMPONENT, servers.terms),
    (network.COMPONENT, network.terms),
    (cooling.COMPONENT, cooling.terms),
    (space.COMPONENT, space.terms),
    (energy.COMPONENT, energy.terms),
    (environment.CARBON, environment.carbon_terms),
    (environment.WATER, environment.water_terms),
    (maintenance.COMPONENT, maintenance.terms),
    (rent.COMPONENT, rent.terms),
)

#: Terms that belong to components above: what stands is kept up and replaced within them.
SHARED_TERMS: Final[tuple[Callable[[Setting], list[Term]], ...]] = (owned.terms,)


def setting_terms(setting: Setting) -> list[Term]:
    """Every term that follows from the setting alone, in the order of the bill."""
    result = [term for _, component in SETTING_COMPONENTS for term in component(setting)]
    return result + [term for shared in SHARED_TERMS for term in shared(setting)]


#: Names of all components, in the order of the bill. ``spares`` is split off from ``servers`` when the bill is written.
COST_COMPONENTS: Final = (*(name for name, _ in SETTING_COMPONENTS), "recovery")
BILL_COMPONENTS: Final = ("servers", "spares", *COST_COMPONENTS[1:])
