"""Halls that a proposal for training leaves open: where a site may have either, each is tried."""

from collections.abc import Iterator
from itertools import product
from typing import get_args

from optimizer.instance.model import Instance
from optimizer.proposals.training_chosen import Wanted
from optimizer.training.places import ONE_SITE, Hall


def in_one_hall(own: Instance, wanted: tuple[Wanted, ...]) -> Iterator[Instance]:
    """The narrowed instance with every choice of halls for the sites whose bought servers name no pool.

    Servers of a plan name their pools, and with them the hall they stand in: then the instance as it is.
    """
    names = [site.name for site in own.sites] or [ONE_SITE]
    stands = [stand for one in wanted for stand in one.stands if stand.sourcing == "buy"]
    used = {stand.site if stand.site in names else names[0] for stand in stands if stand.pool is None}
    sites = own.sites or (own.site,)
    open_ = [
        place for place, name in enumerate(names) if name in used and sites[place].facility == "cheaper"
    ]  # Named pools and open ones do not share a site: a proposal is a plan, or it names none.
    for halls in product(get_args(Hall), repeat=len(open_)):
        chosen = list(sites)
        for place, hall in zip(open_, halls, strict=True):
            chosen[place] = sites[place].model_copy(update={"facility": hall})
        if own.sites:
            yield own.model_copy(update={"sites": tuple(chosen)})
        else:
            yield own.model_copy(update={"site": chosen[0]})
