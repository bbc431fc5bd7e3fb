"""The `--controllers` list."""

import pytest

from dray.controllers import SelectionError, select
from dray.controllers.catalog import CATALOG

KNOWN = ("garbage-collector-controller", "job-controller", "taint-eviction-controller")


@pytest.mark.req("3902-17", "3902-18", "3902-20", "3902-23", "SVS-66")
@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ("*", KNOWN),
        ("", ()),
        ("job-controller", ("job-controller",)),
        ("job-controller,garbagecollector", ("garbage-collector-controller", "job-controller")),
        ("*,-job-controller", ("garbage-collector-controller", "taint-eviction-controller")),
        ("-job-controller,*", ("garbage-collector-controller", "taint-eviction-controller")),
        ("*,-taint-manager", ("garbage-collector-controller", "job-controller")),
        ("*,-TaintManager", ("garbage-collector-controller", "job-controller")),
        ("*,-NoExecuteTaintManager", ("garbage-collector-controller", "job-controller")),
        ("job-controller,-job-controller", ("job-controller",)),
        ("-job-controller,job-controller", ()),
        ("*,-horizontal-pod-autoscaler-controller", KNOWN),
    ],
)
def test_words(wanted: str, expected: tuple[str, ...]) -> None:
    assert select([word for word in wanted.split(",") if word], KNOWN) == expected


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("jobcontroller", "unknown controller 'jobcontroller' (did you mean job-controller?); there are garbage"),
        ("-nonsense", "unknown controller '-nonsense'; there are garbage-collector-controller, job-controller"),
        ("horizontal-pod-autoscaler-controller", "there is no horizontal-pod-autoscaler-controller here to enable"),
    ],
)
def test_mistakes_are_told_with_what_there_is(word: str, message: str) -> None:
    with pytest.raises(SelectionError) as error:
        select(["*", word], KNOWN)
    assert message in str(error.value)


@pytest.mark.req("3902-01", "3902-08")
def test_the_catalog_has_the_controllers_by_their_kubernetes_names() -> None:
    assert set(CATALOG) >= {
        "resourceclaim-controller",
        "garbage-collector-controller",
        "namespace-controller",
        "pod-garbage-collector-controller",
        "resourcequota-controller",
        "replicaset-controller",
        "deployment-controller",
        "job-controller",
        "disruption-controller",
        "serviceaccount-controller",
    }
