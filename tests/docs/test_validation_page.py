"""docs/validation.md is generated from the packaged points."""

from pathlib import Path

from tests.calibration.page import pages

DOCS = Path(__file__).parent.parent.parent / "docs"


def test_page_is_generated(update_goldens: bool) -> None:
    for name, text in pages().items():
        if update_goldens:
            (DOCS / name).write_text(text, encoding="utf-8", newline="\n")
        assert (DOCS / name).read_text(encoding="utf-8") == text, "run: pytest tests/docs --update"
