"""Places for connections: when all are taken, whoever has a large share gives one up, and nobody else."""

from __future__ import annotations

import random

from dray.process.http.places import Places


def filled(**counts: int) -> Places[str]:
    places: Places[str] = Places(sum(counts.values()))
    for owner, count in counts.items():
        for number in range(count):
            places.give(f"{owner}-{number}", owner)
    assert places.are_taken
    return places


def test_who_has_most_gives_up_the_oldest() -> None:
    places = filled(few=10, many=30)
    assert places.find_dispensable() == "many-0"
    places.take_back("many-0")
    assert not places.are_taken
    assert places.find_dispensable() == "many-1"


def test_nobody_who_has_a_small_share_gives_up_any() -> None:
    assert filled(**{f"user{number}": 10 for number in range(10)}).find_dispensable() is None
    assert Places(0).find_dispensable() is None


def test_a_connection_is_on_the_account_of_who_is_known_to_have_it() -> None:
    places = filled(address=8)
    for number in range(8):
        places.give(f"address-{number}", f"user{number}")
    assert places.find_dispensable() is None
    places.give("address-7", "user0")
    places.give("address-6", "user0")
    assert places.find_dispensable() == "address-0"


def test_nothing_is_left_of_those_that_end() -> None:
    chance = random.Random(3)
    places: Places[int] = Places(50)
    for _ in range(2000):
        one = chance.randrange(50)
        if chance.random() < 0.5:
            places.take_back(one)
        else:
            places.give(one, f"user{chance.randrange(5)}")
        assert len(places) == sum(map(len, places._of.values())) == len(list(places))
    for one in range(50):
        places.take_back(one)
    assert not places._of
    assert not places._owners
