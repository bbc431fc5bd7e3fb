"""Label and field selectors: reading, matching, and errors that point at the fault."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dray.api import meta
from dray.api.labels import FieldRequirement, FieldSelector, LabelSelector, Requirement, SelectorError
from work import lines_run

LABELS = {"app": "web", "tier": "front", "empty": "", "size": "10", "big": "99999999999999999999", "in": "out"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", True),
        ("  ", True),
        ("app", True),
        ("missing", False),
        ("!app", False),
        ("!missing", True),
        ("app=web", True),
        ("app==web", True),
        ("app = web", True),
        ("app=db", False),
        ("missing=web", False),
        ("app!=db", True),
        ("app!=web", False),
        ("missing!=web", True),
        ("empty=", True),
        ("empty", True),
        ("app=", False),
        ("app=,tier", False),
        ("missing=", False),
        ("app in (web,db)", True),
        ("app in (db)", False),
        ("app\tin\n( db , web )", True),
        ("missing in (web)", False),
        ("app notin (db)", True),
        ("app notin (web,db)", False),
        ("missing notin (web)", True),
        ("empty in ()", True),
        ("empty in (,a)", True),
        ("empty in (a,)", True),
        ("empty in (a,,b)", True),
        ("app in ()", False),
        ("app notin ()", True),
        ("size>9", True),
        ("size>10", False),
        ("size<11", True),
        ("size<10", False),
        ("missing>1", False),
        ("missing<1", False),
        ("app>1", False),
        ("empty<1", False),
        ("big>1", False),
        ("in", True),
        ("in=out", True),
        ("in in (out)", True),
        ("in in (in,notin)", False),
        ("!notin", True),
        ("app=web,tier in (front,back),!missing,size>9", True),
        ("app=web,tier in (back)", False),
    ],
)
def test_textual_selectors(text: str, expected: bool) -> None:
    assert LabelSelector.parse(text).matches(LABELS) is expected


@pytest.mark.parametrize(
    ("text", "position"),
    [
        (",", 0),
        ("a,", 2),
        ("a,,b", 2),
        ("=a", 0),
        ("!", 1),
        ("!!a", 1),
        ("!a=b", 2),
        ("a b", 2),
        ("a=b c", 4),
        ("a=(b)", 2),
        ("a===b", 3),
        ("a!b", 1),
        ("a in", 4),
        ("a in b", 5),
        ("a in (b", 7),
        ("a in (b c)", 8),
        ("a in (b=c)", 7),
        ("a in (b))", 8),
        ("a notin b", 8),
        ("a>", 0),
        ("a>b", 0),
        ("x,a<1.5", 2),
        ("x,a>9223372036854775808", 2),
        ("a b/c=d", 2),
        ("x, a/b/c", 3),
        ("-a=b", 0),
        ("x,a=-b", 2),
        ("x,a in (b,c/d)", 2),
        ("a\x00=b", 0),
        ("ä=b", 0),
        ("x=y,a=" + "b" * 64, 4),
    ],
)
def test_faulty_textual_selectors(text: str, position: int) -> None:
    with pytest.raises(SelectorError) as caught:
        LabelSelector.parse(text)
    assert caught.value.position == position
    assert f"at character {position + 1}" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("b==1, a", "a,b=1"),
        ("a in (z,y)", "a in (y,z)"),
        ("a notin (x)", "a!=x"),
        ("a notin (x,y),!b,c>1,d<2", "a notin (x,y),!b,c>1,d<2"),
        ("", ""),
    ],
)
def test_selectors_print_in_a_form_that_reads_back(text: str, printed: str) -> None:
    selector = LabelSelector.parse(text)
    assert str(selector) == printed
    assert LabelSelector.parse(printed) == selector


def structured(
    labels: dict[str, str] | None = None, *expressions: tuple[str, str, tuple[str, ...]]
) -> meta.LabelSelector:
    return meta.LabelSelector(
        match_labels=labels or {},
        match_expressions=tuple(
            meta.LabelSelectorRequirement(key=key, operator=operator, values=values)
            for key, operator, values in expressions
        ),
    )


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        (None, False),
        (structured(), True),
        (structured({"app": "web"}), True),
        (structured({"app": "web", "tier": "back"}), False),
        (structured({}, ("app", "In", ("web", "db"))), True),
        (structured({}, ("app", "NotIn", ("web",))), False),
        (structured({}, ("missing", "NotIn", ("web",))), True),
        (structured({}, ("app", "Exists", ())), True),
        (structured({}, ("app", "DoesNotExist", ())), False),
        (structured({"app": "web"}, ("tier", "In", ("front",)), ("missing", "DoesNotExist", ())), True),
        (structured({"app": "web"}, ("tier", "In", ("back",))), False),
    ],
)
def test_structured_selectors(selector: meta.LabelSelector | None, expected: bool) -> None:
    assert LabelSelector.of(selector).matches(LABELS) is expected


def test_an_absent_selector_says_that_it_matches_nothing() -> None:
    assert str(LabelSelector.of(None)) == "<nothing>"


@pytest.mark.parametrize(
    ("selector", "message"),
    [
        (structured({"a b": "c"}), "label key 'a b'"),
        (structured({"a": "c d"}), "value 'c d' for label 'a'"),
        (structured({}, ("a", "Gt", ("1",))), "unknown operator 'Gt'"),
        (structured({}, ("a", "in", ("1",))), "unknown operator 'in'"),
        (structured({}, ("a", "In", ())), "at least one value"),
        (structured({}, ("a", "NotIn", ())), "at least one value"),
        (structured({}, ("a", "Exists", ("1",))), "takes no values"),
        (structured({}, ("a", "DoesNotExist", ("1",))), "takes no values"),
    ],
)
def test_faulty_structured_selectors(selector: meta.LabelSelector, message: str) -> None:
    with pytest.raises(SelectorError, match=message) as caught:
        LabelSelector.of(selector)
    assert caught.value.position is None


def test_requirements_check_their_parts() -> None:
    assert Requirement.of("a", "Gt", ["5"]) == Requirement("a", "Gt", ("5",))
    for operator, values in (("Gt", []), ("Gt", ["1", "2"]), ("Lt", ["x"]), ("Above", ["1"])):
        with pytest.raises(SelectorError):
            Requirement.of("a", operator, values)


FIELDS = {"metadata.name": "pod-1", "spec.nodeName": "node-1", "note": "a,b=c\\d"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", True),
        (",", True),
        ("metadata.name=pod-1", True),
        ("metadata.name==pod-1", True),
        ("metadata.name=pod-2", False),
        ("metadata.name!=pod-2", True),
        ("metadata.name!=pod-1", False),
        ("spec.nodeName=", False),
        ("missing=", True),
        ("missing!=", False),
        ("missing!=x", True),
        ("metadata.name=pod-1,spec.nodeName=node-1", True),
        ("metadata.name=pod-1,,spec.nodeName=node-2", False),
        (r"note=a\,b\=c\\d", True),
        (r"note!=a\,b\=c\\d", False),
        ("metadata.name= pod-1", False),
    ],
)
def test_field_selectors(text: str, expected: bool) -> None:
    assert FieldSelector.parse(text).matches(FIELDS) is expected


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("a", 0),
        ("a=b,c", 4),
        ("a!b", 0),
        ("a=b=c", 3),
        (r"a=b\c", 3),
        ("a=b\\", 3),
        ("x=y,a===b", 7),
        (r"a\,b", 0),
    ],
)
def test_faulty_field_selectors(text: str, position: int) -> None:
    with pytest.raises(SelectorError) as caught:
        FieldSelector.parse(text)
    assert caught.value.position == position


def test_field_selectors_print_escaped() -> None:
    selector = FieldSelector((FieldRequirement("a", "b,c=d\\e"), FieldRequirement("f", "g", negated=True)))
    assert str(selector) == r"a=b\,c\=d\\e,f!=g"
    assert FieldSelector.parse(str(selector)) == selector


def test_long_selectors_are_read_in_linear_time() -> None:
    text = ",".join(f"key{index} in (a,b,c)" for index in range(5_000))
    assert len(LabelSelector.parse(text).requirements) == 5_000
    with pytest.raises(SelectorError):
        LabelSelector.parse("(" * 200_000)
    assert len(FieldSelector.parse("a=b\\\\," * 20_000).requirements) == 20_000


_KEYS = st.sampled_from(["a", "b", "c", "d"])
_VALUES = st.sampled_from(["", "1", "2", "3"])
_REQUIREMENTS = st.one_of(
    st.builds(Requirement, _KEYS, st.sampled_from(["Exists", "DoesNotExist"])),
    st.builds(Requirement, _KEYS, st.sampled_from(["In", "NotIn"]), st.lists(_VALUES, min_size=1).map(tuple)),
    st.builds(Requirement, _KEYS, st.sampled_from(["Gt", "Lt"]), st.sampled_from([("1",), ("2",), ("3",)])),
)


@given(st.lists(_REQUIREMENTS, max_size=20), st.dictionaries(_KEYS, _VALUES))
def test_many_requirements_mean_what_each_of_them_means(asked: list[Requirement], labels: dict[str, str]) -> None:
    assert LabelSelector(tuple(asked)).matches(labels) == all(one.matches(labels) for one in asked)


@given(
    st.lists(st.builds(FieldRequirement, _KEYS, _VALUES, st.booleans()), max_size=20), st.dictionaries(_KEYS, _VALUES)
)
def test_many_fields_mean_what_each_of_them_means(asked: list[FieldRequirement], fields: dict[str, str]) -> None:
    assert FieldSelector(tuple(asked)).matches(fields) == all(one.matches(fields) for one in asked)


@pytest.mark.parametrize("text", ["!k{}", "k{}!=x", "k!={}", "k notin (v{})", "k", "k in (v1,v{})"])
def test_an_object_is_judged_in_the_same_time_however_much_is_asked(text: str) -> None:
    few, many = (LabelSelector.parse(",".join(text.format(n) for n in range(size))) for size in (20, 2000))
    labels = {"k": "v1", "other": "x"}
    assert lines_run(lambda: many.matches(labels)).total() <= lines_run(lambda: few.matches(labels)).total()


def test_a_field_is_judged_in_the_same_time_however_much_is_asked() -> None:
    few, many = (FieldSelector.parse(",".join(f"metadata.name!=v{n}" for n in range(size))) for size in (20, 2000))
    fields = {"metadata.name": "pod"}
    assert lines_run(lambda: many.matches(fields)).total() <= lines_run(lambda: few.matches(fields)).total()
