"""A container may run as a number that no user has: there is no home directory then, and nothing needs one."""

from __future__ import annotations

from pathlib import Path

import pytest

from dray.cli import output
from dray.client.kubeconfig import NothingGiven, find_connection
from dray.files import home


@pytest.fixture
def _nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setattr("os.getuid", lambda: 4_000_000_000)


@pytest.mark.usefixtures("_nobody")
def test_paths_stay_as_they_are() -> None:
    assert home.expand("~/x") == Path("~/x")
    assert output.short_path(Path("/tmp/state")) == "/tmp/state"


@pytest.mark.usefixtures("_nobody")
def test_whoever_names_no_cluster_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(NothingGiven, match=r"~/\.kube/config"):
        find_connection()
