"""Which rules of admission a server by itself leaves out."""

from __future__ import annotations

import pytest

from dray.cli.server_options import disabled_plugins
from dray.server.admission.default_chain import default_chain
from dray.server.indexes.stored_roles import StoredRoles
from dray.store import LocalStore, MemoryBackend


@pytest.mark.parametrize(
    ("enabled", "disabled", "off"),
    [
        ("", "", {"ServiceAccount"}),
        ("ServiceAccount", "", set()),
        ("", "PodSecurity, LimitRanger", {"ServiceAccount", "PodSecurity", "LimitRanger"}),
    ],
)
def test_accounts_are_on_where_somebody_says_so(enabled: str, disabled: str, off: set[str]) -> None:
    found = disabled_plugins(enabled, disabled)
    assert found == off
    roles = StoredRoles(LocalStore(MemoryBackend(), decode=lambda _resource, data: data))
    all_of_them = {plugin.switch for plugin in default_chain(roles).plugins}
    assert {plugin.switch for plugin in default_chain(roles, disabled=found).plugins} == all_of_them - off


@pytest.mark.parametrize(
    ("enabled", "disabled", "why"),
    [
        ("Nothing", "", "--enable-admission-plugins: 'Nothing' cannot be switched"),
        ("", "Nothing", "--disable-admission-plugins: 'Nothing' cannot be switched"),
        ("ServiceAccount", "ServiceAccount", "ServiceAccount is both enabled and disabled"),
    ],
)
def test_what_cannot_be_switched_is_said(
    enabled: str, disabled: str, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        disabled_plugins(enabled, disabled)
    assert ended.value.code == 2
    assert why in capsys.readouterr().err
