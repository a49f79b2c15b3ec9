"""Every architecture of the catalogue: its total parameters and its cache against what is published."""

import pytest

from optimizer.models import architecture_from_catalog
from optimizer.performance.architecture import (
    kv_elements_per_token_full,
    kv_elements_per_token_sliding,
    parameter_counts,
)
from tests.cases.build import catalog

TOLERANCE = {"exact": 1e-3, "headline": 0.03}


@pytest.mark.parametrize("name", sorted(catalog().models))
def test_total_and_cache(name: str) -> None:
    row = catalog().models[name]
    architecture = architecture_from_catalog(row)
    if row.total_parameters_published is not None:
        published = float(row.total_parameters_published)
        assert parameter_counts(architecture).total == pytest.approx(published, rel=TOLERANCE[row.total_kind])
    if row.kv_elements_per_token_full is not None:
        assert kv_elements_per_token_full(architecture) == pytest.approx(row.kv_elements_per_token_full)
    if row.kv_elements_per_token_sliding is not None:
        assert kv_elements_per_token_sliding(architecture) == pytest.approx(row.kv_elements_per_token_sliding)


def test_most_totals_are_known() -> None:
    known = [row for row in catalog().models.values() if row.total_parameters_published is not None]
    assert len(known) >= 88
