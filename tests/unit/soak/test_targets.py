"""What `make soak` fuzzes for hours takes its seeds, and some hundred inputs near them, in every run."""

from __future__ import annotations

import random

import pytest

from soak import fuzz
from soak.targets import SEEDS, TARGETS

PIECES = (b'"', b"{", b"}", b"[", b"]", b",", b":", b"null", b"1e99", b"-", b"\n", b"\r\n", b"\0", b"\xff", b"a" * 300)


def changed(data: bytes, dice: random.Random) -> bytes:
    """An input near another one."""
    made = bytearray(data)
    for _ in range(dice.randint(1, 4)):
        place, other = sorted((dice.randrange(len(made) + 1), dice.randrange(len(made) + 1)))
        way = dice.random()
        if way < 0.4:
            made[place : place + 1] = bytes([dice.randrange(256)])
        elif way < 0.7:
            made[place:place] = dice.choice(PIECES)
        else:
            made[place:other] = b""
    return bytes(made)


@pytest.mark.parametrize("name", TARGETS)
def test_nothing_but_refusals(name: str) -> None:
    dice = random.Random(name)
    for seed in SEEDS[name]:
        TARGETS[name](seed)
    for _ in range(60):
        TARGETS[name](changed(dice.choice(SEEDS[name]), dice))


def test_every_target_is_fuzzed() -> None:
    assert set(fuzz.TARGETS) == set(TARGETS) == set(SEEDS)
