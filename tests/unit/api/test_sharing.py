"""What is remembered of parts of objects: for the same object, with the same arguments, and only so much of it."""

from dray.api.generated.core import PodSpec
from dray.api.sharing import LIMIT, remembered


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
