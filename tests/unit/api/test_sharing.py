"""What is remembered of parts of objects: for the same object, with the same arguments, and only so much of it."""

import pytest

from dray.api import sharing
from dray.api.generated.core import PodSpec
from dray.api.sharing import LARGE, LIMIT, WIDE, is_small, remembered


def test_a_part_is_worked_on_once() -> None:
    asked: list[PodSpec] = []

    @remembered
    def name(spec: PodSpec) -> str:
        asked.append(spec)
        return spec.node_name.upper()

    spec, equal = PodSpec(node_name="a"), PodSpec(node_name="a")
    assert [name(spec), name(spec), name(equal)] == ["A", "A", "A"]
    assert [one is spec for one in asked] == [True, False]


def test_other_arguments_are_another_question() -> None:
    @remembered
    def labelled(spec: PodSpec, suffix: str, *, loud: bool = False) -> str:
        return (spec.node_name + suffix).upper() if loud else spec.node_name + suffix

    spec = PodSpec(node_name="a")
    assert [labelled(spec, "1"), labelled(spec, "2"), labelled(spec, "1", loud=True)] == ["a1", "a2", "A1"]


def test_results_are_right_however_many_parts_come_and_go() -> None:
    @remembered
    def name(spec: PodSpec) -> str:
        return spec.node_name

    # Each spec is gone before the next one comes, so that an identity may well be used again.
    assert all(name(PodSpec(node_name=str(number))) == str(number) for number in range(4 * LIMIT))


def test_two_arguments_are_told_apart() -> None:
    asked: list[str] = []

    @remembered
    def labelled(spec: PodSpec, suffix: str) -> str:
        asked.append(suffix)
        return spec.node_name + suffix

    spec, other = PodSpec(node_name="a"), PodSpec(node_name="b")
    assert [
        labelled(spec, "1"),
        labelled(other, "1"),
        labelled(spec, "2"),
        labelled(spec, "1"),
    ] == ["a1", "b1", "a2", "a1"]
    assert asked == ["1", "1", "2"]


def test_long_arguments_are_not_kept() -> None:
    asked: list[int] = []

    @remembered
    def length(spec: PodSpec, names: tuple[str, ...], name: str) -> int:
        asked.append(len(names))
        return len(spec.node_name) + len(names) + len(name)

    spec = PodSpec(node_name="a")
    for names in (("x" * LARGE, "x"), ("x",)):
        assert {length(spec, names, "n") for _ in range(3)} == {len(names) + 2}
    assert asked == [2, 2, 2, 1]


def test_a_part_with_a_long_list_is_not_written_to_see_how_long_it_is() -> None:
    assert is_small(PodSpec(node_selector={f"k{number}": "" for number in range(WIDE)}))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sharing, "_encoder", None)
        assert not is_small(PodSpec(node_selector={f"k{number}": "" for number in range(WIDE + 1)}))
