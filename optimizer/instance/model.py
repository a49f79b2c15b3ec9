"""The instance: what the planner wrote, validated and frozen."""

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Discriminator, Field, Tag

from optimizer.catalog.rows import Accelerator, CoolingOption, PurchasePrice, RentalOffer
from optimizer.instance.choices import Choices
from optimizer.instance.economics import Economics
from optimizer.instance.fields import REQUIRED, Ruled, field
from optimizer.instance.inventory import OwnedServers
from optimizer.instance.site import NamedSite, Site, WanLink
from optimizer.instance.solver import SolverOptions
from optimizer.instance.targets import Targets
from optimizer.instance.training import TrainingWorkload
from optimizer.instance.uncertainty import Uncertainty
from optimizer.instance.workload import ServingWorkload

FORMAT_VERSION = 1


def _kind(value: Any) -> str:
    """Kind of a workload: serving where none is stated."""
    kind = value.get("kind", "serving") if isinstance(value, dict) else getattr(value, "kind", "serving")
    return str(kind)


Workload = Annotated[
    Annotated[ServingWorkload, Tag("serving")] | Annotated[TrainingWorkload, Tag("training")], Discriminator(_kind)
]


class OwnRows(Ruled):
    """The planner's own catalogue rows; a row whose id is known replaces the packaged one."""

    accelerators: tuple[Accelerator, ...] = field((), "Accelerators.")
    purchase_prices: tuple[PurchasePrice, ...] = field((), "Purchase prices.")
    rental_offers: tuple[RentalOffer, ...] = field((), "Rental offers.")
    cooling: tuple[CoolingOption, ...] = field((), "Cooling options.")


class Instance(Ruled):
    """What must hold, what may be chosen, where it stands, what it costs."""

    model_config = ConfigDict(title="Instance of gpu-cluster-optimizer")

    schema_url: str | None = Field(None, alias="$schema", description="Address of the JSON Schema, for editors.")
    format_version: Literal[1] = field(1, "Version of this format.", default_source="the only version")
    name: str = field(REQUIRED, "Name of the instance, shown in every answer.", min_length=1, max_length=200)
    story: str = field("", "What it is about, for readers.", max_length=20_000)
    workload: Workload = field(REQUIRED, "The work: a model that is served, or one that is trained.")
    targets: Targets = field(Targets(), "What must hold.")
    choices: Choices = field(Choices(), "What may be chosen.")
    site: Site = field(Site(), "Where it stands.")
    sites: tuple[NamedSite, ...] = field((), "Several sites, for training; in place of site.", max_length=8)
    wan_links: tuple[WanLink, ...] = field((), "Links between sites, for training over several.", max_length=64)
    economics: Economics = field(Economics(), "What it costs.")
    inventory: tuple[OwnedServers, ...] = field(
        (), "Servers that are already owned.", default_source="none", max_length=64
    )
    catalog: OwnRows | str = field(OwnRows(), "The planner's own catalogue rows, or the path of a JSON file with them.")
    uncertainty: Uncertainty | None = field(None, "What is not known, for `optimize robust`.")
    solver: SolverOptions = field(SolverOptions(), "How it is solved.")

    def own_rows(self) -> OwnRows:
        """The planner's own rows. The reader has put those of a file in the place of its path."""
        if isinstance(self.catalog, str):
            raise TypeError(f"catalog is still the path {self.catalog!r}: read the instance with read_instance")
        return self.catalog
