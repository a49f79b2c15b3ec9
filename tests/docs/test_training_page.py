"""docs/training.md is generated from the packaged calibration."""

from pathlib import Path

from tests.calibration.training.page import page

PAGE = Path(__file__).parent.parent.parent / "docs" / "training.md"


def test_page_is_generated(update_goldens: bool) -> None:
    text = page()
    if update_goldens:
        PAGE.write_text(text, encoding="utf-8", newline="\n")
    assert PAGE.read_text(encoding="utf-8") == text, "run: pytest tests/docs --update"
