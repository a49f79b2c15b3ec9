"""Small real instances, screened once: what holds here must hold whatever the performance model predicts."""

from functools import cache

from optimizer.candidates import build_candidates
from optimizer.instance.model import Instance
from optimizer.models import served_model
from optimizer.offer import Offer, make_offer
from optimizer.performance.factors import Factors, load_factors
from optimizer.schemes import scheme_options
from optimizer.screen import Screened, screen
from optimizer.setting import build_setting
from tests.core.hand import Json, catalog, instance


@cache
def factors() -> Factors:
    """The packaged constants, read once."""
    return load_factors()


def screened(given: Instance) -> Screened:
    """The candidates of an instance against its limits."""
    setting = build_setting(given, catalog())
    model = served_model(given, setting.catalog)
    return screen(build_candidates(setting, model, scheme_options(setting, model), factors()))


def offer(given: Instance, *, dominate: bool = True) -> Offer:
    """What an instance offers to the program."""
    return make_offer(screened(given), dominate=dominate)


def small(**sections: Json) -> Instance:
    """An 8B model on two cards, few layouts."""
    choices = {
        "accelerators": ["l40s", "h100-80gb-sxm"],
        "tensor_parallel": [1, 2],
        "pipeline_parallel": [1],
        "schemes": ["w16a16", "w8a8-fp8"],
        "cooling": ["air_containment_econ"],
    }
    choices.update(sections.pop("choices", {}))
    workload = {"demand": {"requests_per_s": 100}, "request": {"input_tokens": 500, "output_tokens": 100}}
    workload.update(sections.pop("workload", {}))
    targets = {"spare_fraction": 0.05, "peak_utilization_fraction": 0.9, **sections.pop("targets", {})}
    return instance(choices=choices, workload=workload, targets=targets, **sections)
