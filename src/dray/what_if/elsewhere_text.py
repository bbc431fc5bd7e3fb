"""Whether pods that leave fit elsewhere, in words: a cell of a table for each, and below it why some fit nowhere."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from dray.prose.wording import names, shorten
from dray.what_if.evictions import Eviction

MAX_REASONS = 4
"""Reasons for which pods fit nowhere else that are told."""
MAX_REASON = 400


def tell_place(pod: Eviction) -> str:
    """`yes: node-2, node-4`, `no`, or why nobody knows."""
    if pod.fits is None:
        return f"not known: {pod.why_not}" if pod.why_not else "not tried"
    return f"yes: {', '.join(filter(None, (pod.fits_on, *pod.also_on)))}" if pod.fits else "no"


def tell_homeless(pods: Iterable[Eviction]) -> Iterator[str]:
    """Whom others make room for, and those who fit nowhere else for the same reason together, the most first."""
    homeless: dict[str, list[str]] = {}
    for pod in pods:
        if pod.victims:
            yield f"{pod.pod} fits nowhere else, and {tell_victims(pod.victims)}"
        elif pod.fits is False:
            homeless.setdefault((pod.why_not or "").removesuffix("."), []).append(pod.pod)
    ordered = sorted(homeless.items(), key=lambda one: -len(one[1]))
    for why, alike in ordered[:MAX_REASONS]:
        yield f"{_fit(alike)} nowhere else{f' ({shorten(why, MAX_REASON)})' if why else ''}"
    others = [pod for _, alike in ordered[MAX_REASONS:] for pod in alike]
    if others:
        yield f"{_fit(others)} nowhere else, for other reasons"


def tell_victims(victims: Sequence[str]) -> str:
    """Goes on after the pod that has the priority for it."""
    return f"makes pods of lower priority go: {names(victims, 5)}"


def _fit(pods: list[str]) -> str:
    return f"{names(pods, 5)} {'fits' if len(pods) == 1 else 'fit'}"
