"""Recovery: calibration, verification and fine-tuning after quantization, paid once for each scheme that is used."""

from collections.abc import Iterable

from optimizer.costs.over_time import timed
from optimizer.costs.term import Term, capital, capital_recovery_factor
from optimizer.schemes import SchemeOption
from optimizer.setting import Setting

COMPONENT = "recovery"


def terms(setting: Setting, schemes: Iterable[SchemeOption]) -> list[Term]:
    """One term a scheme that costs something to prepare; an annuity over the horizon."""
    economics = setting.instance.economics
    annuity = ("annuity", capital_recovery_factor(economics.discount_rate, economics.horizon_years))
    result = []
    for option in schemes:
        usd = option.preparation.usd
        if usd > 0.0:
            provenance = (option.preparation.source, option.preparation.as_of, option.preparation.trust)
            key = ("SchemePrepared", option.id)
            once = capital(COMPONENT, f"prepare {option.id}", key, "scheme", usd, annuity, provenance)
            result.append(timed(once, economics))
    return result
