"""What every test may use."""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--update`` writes the golden files again; the difference is then read in the commit."""
    parser.addoption("--update", action="store_true", help="write golden files again")


@pytest.fixture
def update_goldens(request: pytest.FixtureRequest) -> bool:
    """Whether golden files are to be written again."""
    return bool(request.config.getoption("--update"))
