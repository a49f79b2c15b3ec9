"""What every test may use."""

from collections.abc import Generator

import pytest
from hypothesis import settings

# The same examples every time, and none refused because the machine is busy: a change is judged by what it changes.
settings.register_profile("steady", derandomize=True, deadline=None)
settings.load_profile("steady")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of this project's tests."""
    parser.addoption(
        "--update", action="store_true", help="write golden files again; read the difference in the commit"
    )
    parser.addoption("--no-skips", action="store_true", help="count a skipped test as failed, as .ci/run does")


@pytest.fixture
def update_goldens(request: pytest.FixtureRequest) -> bool:
    """Whether golden files are to be written again."""
    return bool(request.config.getoption("--update"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """With ``--no-skips`` a test that was skipped has failed: its program should have been installed."""
    report = yield
    if report.skipped and item.config.getoption("--no-skips") and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skipped where nothing may be: {report.longrepr}"
    return report
