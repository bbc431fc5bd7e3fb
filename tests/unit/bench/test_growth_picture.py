"""The picture of what grows with the cluster: it is of the results that are there, and says them in words, too."""

from __future__ import annotations

from tools import growth_picture

ROWS = [
    {"nodes": nodes, "pods_per_second": rate, "memory_mib": 100.0, "small_get_p50_ms": 3.2, "small_get_p99_ms": 20.0}
    for nodes, rate in ((250, 900.5), (5_000, 450.0))
]


def test_it_is_of_the_results_that_are_there() -> None:
    assert growth_picture.PICTURE.read_text() == growth_picture.render(), "run: make generate"


def test_it_says_what_is_to_be_seen() -> None:
    drawn = growth_picture.draw(ROWS, 2_000)
    assert "2,000 pods with a claim each" in drawn
    assert "Pods bound per second: 900.5 with 250 nodes, 450 with 5,000 nodes" in drawn
    assert "A small GET meanwhile, ms (99 of 100): 20 with 250 nodes" in drawn


def test_half_the_rate_is_half_as_high() -> None:
    full, half = (
        growth_picture.TOP + growth_picture.HEIGHT - round(growth_picture.HEIGHT * part) for part in (1, 450 / 900.5)
    )
    drawn = growth_picture.draw(ROWS, 2_000)
    assert f" {full - 2}h5v5h-5z" in drawn
    assert f" {half - 2}h5v5h-5z" in drawn
