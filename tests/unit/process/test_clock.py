"""Times as the API writes them."""

import pytest

from dray.process.clock import as_time


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "1970-01-01T00:00:00Z"),
        (1_750_000_000.999, "2025-06-15T15:06:40Z"),
        (-0.5, "1969-12-31T23:59:59Z"),
    ],
)
def test_a_time_is_cut_to_the_second(seconds: float, text: str) -> None:
    assert as_time(seconds) == text
