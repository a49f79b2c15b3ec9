"""The table of constants: complete, sourced, within physical bounds."""

import copy
from dataclasses import fields, replace

import numpy as np
import pytest

from optimizer.performance import factors as f


def test_every_constant_has_a_source() -> None:
    sources = f.factor_sources(f.packaged_document())
    assert {s.name for s in sources} == {field.name for field in fields(f.Factors)}
    for s in sources:
        assert s.unit
        assert s.meaning
        assert s.source
        assert s.as_of
        assert s.trust in f.TRUSTS


def test_efficiencies_have_their_axes() -> None:
    factors = f.load_factors()
    assert factors.bandwidth_efficiency.shape == (len(f.GENERATIONS), len(f.WEIGHT_WIDTHS))
    assert factors.flop_efficiency.shape == (len(f.GENERATIONS), len(f.PRECISIONS))
    assert factors.step_overhead_ms.shape == (len(f.ENGINES),)


def test_nothing_may_beat_the_peak() -> None:
    factors = f.load_factors()
    with pytest.raises(ValueError, match="nothing beats the peak"):
        replace(factors, flop_efficiency=factors.flop_efficiency * 2)
    with pytest.raises(ValueError, match="finite"):
        replace(factors, blend_exponent=float("nan"))


def test_wrong_tables_are_refused() -> None:
    document = f.packaged_document()
    lacking = copy.deepcopy(document)
    del lacking["factors"]["graph_gib"]
    with pytest.raises(ValueError, match="missing: \\['graph_gib'\\]"):
        f.factors_from_document(lacking)
    unknown = copy.deepcopy(document)
    unknown["factors"]["step_overhead_ms"]["value"] = {"default": 1.0, "vlm": 2.0}
    with pytest.raises(ValueError, match="unknown key 'vlm'"):
        f.factors_from_document(unknown)
    text = copy.deepcopy(document)
    text["factors"]["graph_gib"]["value"] = "half"
    with pytest.raises(ValueError, match="expected a number"):
        f.factors_from_document(text)


def test_default_fills_what_is_not_named() -> None:
    document = f.packaged_document()
    document["factors"]["step_overhead_ms"]["value"] = {"default": 2.0, "vllm": 3.0}
    assert np.array_equal(f.factors_from_document(document).step_overhead_ms, [2.0, 3.0, 2.0, 2.0])
