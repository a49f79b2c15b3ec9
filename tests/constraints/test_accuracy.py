"""Accuracy: recovery at the asked confidence against the floor; schemes that cost something are paid once when used."""

import numpy as np
import pytest

from constraints import accuracy
from tests.constraints.border import bounds, check_border, kept, seen
from tests.core.hand import bought, cost, data_of, instance, offered, price, server_type, solve


def test_border() -> None:
    check_border(accuracy, "accuracy", "accuracy", 0.99, larger_is_looser=False)


def test_too_little_published_is_never_enough() -> None:
    assert not kept(accuracy, bounds(accuracy=1e-9), seen(accuracy=-np.inf))["accuracy"]


@pytest.mark.parametrize("prepared_usd", [1.5, 2.5])
def test_preparation_is_paid_once_when_it_is_worth_it(prepared_usd: float) -> None:
    """Ten requests/s: two replicas prepared, or four plain ones; a server costs 1 an hour. Border at 2 an hour."""
    of = server_type()
    deployments = [offered("plain", of, rate=2.5), offered("tuned", of, rate=5.0, scheme="tuned")]
    terms = [price(("Servers", "air"), 1.0), price(("SchemePrepared", "tuned"), prepared_usd, component="recovery")]
    data = data_of(instance(), [bought("air", of)], deployments, terms)
    found = solve(data)
    assert found is not None
    assert found.usd_per_hour == pytest.approx(min(2.0 + prepared_usd, 4.0))
    assert ("SchemePrepared[tuned]" in found.values) == (prepared_usd < 2.0)


def test_a_prepared_scheme_serves_every_class_and_pool_for_one_price() -> None:
    of = server_type()
    classes = [
        {"name": name, "request": {"input_tokens": 9, "output_tokens": 9}, "demand": {"requests_per_s": 5}}
        for name in ("one", "two")
    ]
    deployments = [offered(f"tuned{b}", of, rate=5.0, scheme="tuned", class_index=b) for b in (0, 1)]
    terms = [price(("Servers", "air"), 1.0), price(("SchemePrepared", "tuned"), 10.0, component="recovery")]
    given = instance(workload={"classes": classes})
    data = data_of(given, [bought("air", of)], deployments, terms, demand=(5.0, 5.0))
    assert cost(data) == pytest.approx(12.0)
