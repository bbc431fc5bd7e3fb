"""The names that a server's certificate is to be good for."""

from __future__ import annotations

import pytest

from dray.cli.server_options import certified_names


@pytest.mark.parametrize("name", ["bad name!", "", "a..b", "10.0.0.300", "https://x", "host:6443", "*", "*.*.com"])
def test_a_name_that_no_machine_has_is_refused(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        certified_names(["api.example.com", name])
    assert ended.value.code == 2
    assert f"--server-name {name!r} is no name of a machine and no address" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["api", "api.example.com", "API.Example.com", "*.example.com", "10.0.0.7", "::1"])
def test_names_and_addresses_that_a_certificate_can_have(name: str) -> None:
    assert certified_names([name]) == (name,)
    assert certified_names(None) == ()
