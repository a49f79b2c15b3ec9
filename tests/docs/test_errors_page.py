"""docs/errors.md is generated from the table of codes."""

from pathlib import Path

from optimizer.errors import CODES

PAGE = Path(__file__).parent.parent.parent / "docs" / "errors.md"

_HEAD = """# Error codes

Every fault of an input is one line on stderr, all of them at once, in the order of the file; the exit code is 3:

    error[E-TARGETS-003] my.json:14:22 targets.tpot_ms: found -5; must be > 0 ms

Code, file with line and column, field, what was found, what is allowed, and often what to write instead. A code keeps
its meaning for ever. `optimize explain E-TARGETS-003` prints its entry. This page is generated from
`optimizer/errors.py`.
"""


def page() -> str:
    """The page as the table of codes makes it."""
    sections: dict[str, list[str]] = {}
    for code in CODES.values():
        name = code.code.removeprefix("E-").rpartition("-")[0]
        sections.setdefault(name, []).append(f"### {code.code}\n\n{code.meaning} {code.remedy}\n")
    return "\n".join([_HEAD, *(f"## {name}\n\n" + "\n".join(entries) for name, entries in sections.items())])


def test_page_is_generated(update_goldens: bool) -> None:
    if update_goldens:
        PAGE.write_text(page(), encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == page(), "run: pytest tests/docs --update"
