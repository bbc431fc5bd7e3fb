"""What was asked for is waited for, but not for ever."""

from dray.controllers.expectations import LONGEST, Expectations
from dray.controllers.resource_claim.memory import Memory


class Time:
    """A clock to turn by hand."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_expectations_are_met_when_everything_was_seen() -> None:
    expected = Expectations(Time())
    assert expected.are_met("owner")
    expected.expect_created("owner", "a")
    expected.expect_deleted("owner", "uid")
    assert not expected.are_met("owner")
    assert expected.are_met("somebody else")
    expected.saw_created("owner", "a")
    assert not expected.are_met("owner")
    expected.saw_deleted("owner", "uid")
    assert expected.are_met("owner")


def test_news_that_comes_first_does_no_harm() -> None:
    expected = Expectations(Time())
    expected.saw_created("owner", "a")
    assert expected.are_met("owner")


def test_news_that_never_comes_is_given_up() -> None:
    time = Time()
    expected = Expectations(time)
    expected.expect_created("owner", "a")
    time.now = LONGEST - 1
    assert not expected.are_met("owner")
    time.now = LONGEST + 1
    assert expected.are_met("owner")


def test_a_claim_is_new_until_it_is_seen_or_a_minute_old() -> None:
    time = Time()
    memory = Memory(time)
    memory.note_made("pod", "ns", "dev", "c1")
    assert memory.is_new("ns", "c1")
    assert memory.made("pod") == {"dev": "c1"}
    memory.saw_claim("ns", "c1")
    assert not memory.is_new("ns", "c1")
    memory.note_made("pod", "ns", "dev", "c2")
    time.now = 61
    assert not memory.is_new("ns", "c2")
    memory.note_gone("pod")
    assert memory.made("pod") == {}
    assert memory.is_gone("pod")
