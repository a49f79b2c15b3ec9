"""The model of an instance: from the catalogue by name, from a configuration, or written out."""

import pytest

from optimizer.instance.workload import HuggingFaceConfig
from optimizer.models import UNQUANTIZED, architecture_from_catalog, served_model
from optimizer.performance.architecture import parameter_counts
from tests.core.hand import catalog, instance
from tests.core.test_api import LLAMA


@pytest.mark.parametrize("key", sorted(catalog().models))
def test_every_model_of_the_catalogue_is_served(key: str) -> None:
    model = served_model(instance(workload={"model": key}), catalog())
    row = catalog().models[key]
    assert model.catalog_id == key
    assert (model.native_scheme, model.native_block_width) == (row.native_scheme, row.native_block_width)
    assert model.native_experts_only == (row.native_scope == "experts")
    counts = parameter_counts(architecture_from_catalog(row))
    assert (model.total_parameters, model.active_parameters) == (counts.total, counts.active)
    assert 0 < model.active_parameters <= model.total_parameters
    assert model.is_dense == (row.experts == 0)
    if model.is_dense:
        assert model.active_parameters >= 0.5 * model.total_parameters


def test_names_are_resolved_to_one_row() -> None:
    one, other = (
        served_model(instance(workload={"model": name}), catalog()) for name in ("llama-3.1-8b", "Llama-3.1-8B")
    )
    assert one == other
    assert one.total_parameters == pytest.approx(8.03e9, rel=0.01)


def test_a_configuration_is_unquantized_and_of_no_row() -> None:
    given = instance()
    config = HuggingFaceConfig(name="mine", config=LLAMA)
    changed = given.model_copy(update={"workload": given.workload.model_copy(update={"model": config})})
    model = served_model(changed, catalog())
    assert (model.name, model.catalog_id, model.native_scheme) == ("mine", None, UNQUANTIZED)
    # 16 layers of 60.8e6, embeddings of 263e6 used twice.
    assert model.total_parameters == pytest.approx(1.236e9, rel=0.001)
    assert model.is_dense


def test_a_model_written_out_is_that_of_its_row() -> None:
    row = catalog().models[catalog().resolve_model("llama-3.1-8b")]
    content = row.model_dump(mode="json", exclude={"source", "as_of", "trust"})
    inline = served_model(instance(workload={"model": {**content, "id": "written-out"}}), catalog())
    named = served_model(instance(), catalog())
    assert (inline.name, inline.catalog_id) == ("written-out", None)
    assert inline.architecture == named.architecture
