"""The rows of each family are those of its golden text; ``pytest tests/golden --update`` writes them again."""

from pathlib import Path

import pytest

from optimizer.program import build_program, named_rows
from tests.core.test_random_programs import IMPLIED
from tests.golden.rows import ADDERS, FOLDER, PRICE_TIERS, golden_data, lp_text, rows_by_part


@pytest.mark.parametrize("part", list(ADDERS))
def test_rows_are_the_golden_ones(part: str, tmp_path: Path, update_goldens: bool) -> None:
    found = lp_text(part, tmp_path)
    golden = FOLDER / f"{part}.lp"
    if update_goldens:
        golden.write_text(found)
    assert found == golden.read_text()


def test_every_family_with_rows_has_a_golden_and_no_golden_is_left_over() -> None:
    assert {path.stem for path in FOLDER.glob("*.lp")} == set(ADDERS)
    assert {"throughput", "spare", "cooling", "space", "power", "supply", "budget", PRICE_TIERS} <= set(ADDERS)


def test_rows_that_only_tighten_are_in_the_goldens() -> None:
    rows = {row for names in rows_by_part(golden_data()).values() for row in names}
    assert rows >= set(IMPLIED)


def test_every_row_of_the_program_belongs_to_one_part() -> None:
    parts = rows_by_part(golden_data())
    rows = [row for names in parts.values() for row in names]
    assert sorted(rows) == sorted(named_rows(build_program(golden_data())))
    assert all(parts.values()), "the golden data set exercises every part"


def test_every_row_and_variable_says_what_it_is() -> None:
    model = build_program(golden_data())
    silent = [component.name for component in model.component_objects(active=True) if not component.doc]
    # Sets that Pyomo makes for an index have no words of ours.
    assert not [name for name in silent if "_index" not in name and not name.endswith("_domain")]
