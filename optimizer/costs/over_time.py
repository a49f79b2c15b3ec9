"""What time makes of a price: factors that terms carry, so that every yearly cost is an even one over the horizon."""

from optimizer.costs.finance import levelising_factor
from optimizer.instance.economics import Economics

Factors = tuple[tuple[str, float], ...]


def running(economics: Economics, growth: float) -> Factors:
    """Factors of a cost that is paid every year and rises by ``growth`` a year from the second year on."""
    if growth == 0.0:
        return ()
    return (("levelised", levelising_factor(economics.discount_rate, economics.horizon_years, growth)),)
