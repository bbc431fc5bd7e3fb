"""What is encrypted at rest: Kubernetes' file, and what is said of one that makes no sense."""

from __future__ import annotations

from pathlib import Path

import pytest

from dray.server.security.encryption_configuration import EncryptionConfigurationError, read_encryption
from dray.store import Key
from dray.store.encryption import Encryption, Undecipherable, is_sealed

ONE, TWO = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=", "ZmVkY2JhOTg3NjU0MzIxMA=="
SECRET, MAP = Key("secrets", "default", "s"), Key("configmaps", "default", "m")
DATA = b'{"kind":"Secret","metadata":{"resourceVersion":"7"},"data":"aHVudGVyMg=="}'


def keys(*names: str) -> str:
    values = {"one": ONE, "two": TWO}
    return "aesgcm: {keys: [" + ", ".join(f"{{name: {name}, secret: {values[name]}}}" for name in names) + "]}"


def entry(resources: str, *providers: str) -> str:
    return f"- resources: [{resources}]\n  providers:\n" + "".join(f"  - {each}\n" for each in providers)


def read(tmp_path: Path, *entries: str) -> Encryption:
    file = tmp_path / "encryption.yaml"
    file.write_text(
        "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n" + "".join(entries)
    )
    return read_encryption(file)


def test_the_first_provider_writes_and_all_of_them_read(tmp_path: Path) -> None:
    plain = read(tmp_path, entry("secrets", "identity: {}", keys("one")))
    first = read(tmp_path, entry("secrets", keys("one"), "identity: {}"))
    both = read(tmp_path, entry("secrets", keys("two", "one")))
    second = read(tmp_path, entry("secrets", keys("two")))
    assert plain.seal(SECRET, DATA) == DATA
    assert first.open(SECRET, DATA) == (DATA, True)
    sealed = first.seal(SECRET, DATA)
    assert sealed.startswith(b"k8s:enc:aesgcm:v1:one:")
    assert b"aHVudGVyMg" not in sealed
    assert first.seal(SECRET, DATA) != sealed, "a nonce must not come twice"
    assert first.open(SECRET, sealed) == (DATA, False)
    assert plain.open(SECRET, sealed) == (DATA, True)
    assert both.open(SECRET, sealed) == (DATA, True)
    assert both.open(SECRET, both.seal(SECRET, DATA)) == (DATA, False)
    assert second.open(SECRET, both.seal(SECRET, DATA)) == (DATA, False)
    assert first.seal(MAP, DATA) == DATA
    with pytest.raises(Undecipherable, match="with the key 'one', which is not among those for secrets"):
        second.open(SECRET, sealed)
    with pytest.raises(Undecipherable, match="is not encrypted, and --encryption-provider-config does not allow that"):
        second.open(SECRET, DATA)
    with pytest.raises(Undecipherable, match="secrets default/other cannot be decrypted"):
        first.open(Key("secrets", "default", "other"), sealed)
    with pytest.raises(Undecipherable, match="cannot be decrypted"):
        first.open(SECRET, sealed[:-1] + bytes([sealed[-1] ^ 1]))
    with pytest.raises(Undecipherable, match="a provider that dray does not have"):
        first.open(SECRET, b"k8s:enc:kms:v2:x:abc")


@pytest.mark.parametrize(
    ("resource", "is_encrypted"),
    [
        ("events", False),
        ("secrets", True),
        ("widgets.example.com", True),
        ("pods", False),
        ("other.example.org", False),
    ],
)
def test_wildcards(tmp_path: Path, resource: str, is_encrypted: bool) -> None:
    encryption = read(tmp_path, entry("events", "identity: {}"), entry("secrets, '*.example.com'", keys("one")))
    assert is_sealed(encryption.seal(Key(resource, "n", "x"), DATA)) == is_encrypted
    everything = read(tmp_path, entry("events", "identity: {}"), entry("'*.*'", keys("one")))
    assert is_sealed(everything.seal(Key(resource, "n", "x"), DATA)) == (resource != "events")
    core = read(tmp_path, entry("'*.'", keys("one")))
    assert is_sealed(core.seal(Key(resource, "n", "x"), DATA)) == ("." not in resource)


@pytest.mark.parametrize(
    ("entries", "problem"),
    [
        ([], "Expected `array`, got `null`"),
        ([entry("", keys("one"))], r"resources\[0\].resources: at least one"),
        (["- {resources: [secrets], providers: []}\n"], r"resources\[0\].providers: at least one"),
        ([entry("secrets", "{}")], "exactly one provider"),
        ([entry("secrets", "{identity: {}, aesgcm: {keys: []}}")], "exactly one provider"),
        ([entry("secrets", "identity: {x: 1}")], "must be empty"),
        ([entry("secrets", "aescbc: {keys: []}")], "aescbc is not there; use aesgcm or identity"),
        ([entry("secrets", "kms: {name: x}")], "kms is not there"),
        ([entry("secrets", "aesgcm: {keys: []}")], "keys: at least one"),
        ([entry("secrets", "aesgcm: {keys: [{name: a, secret: '!!'}]}")], r"keys\[0\].secret: must be base64"),
        ([entry("secrets", "aesgcm: {keys: [{name: a, secret: YWJj}]}")], "16, 24 or 32 bytes in base64, and is 3"),
        ([entry("secrets", f"aesgcm: {{keys: [{{name: 'a:b', secret: {ONE}}}]}}")], "must not have a colon"),
        ([entry("secrets", keys("one", "one"))], "two keys have the name 'one'"),
        ([entry("secrets, secrets", keys("one"))], "is named in"),
        ([entry("'*.*'", keys("one")), entry("secrets", keys("one"))], "'secrets' has no effect, because"),
        ([entry("'*.apps'", keys("one")), entry("deployments.apps", keys("one"))], "has no effect"),
        ([entry("'*'", keys("one"))], "must be a resource such as"),
        ([entry("Secrets", keys("one"))], "must be a resource such as"),
        ([entry("secrets", "aesgcm: {key: []}")], "unknown field"),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(tmp_path: Path, entries: list[str], problem: str) -> None:
    with pytest.raises(EncryptionConfigurationError, match=problem) as raised:
        read(tmp_path, *entries)
    assert str(tmp_path / "encryption.yaml") in str(raised.value)
    assert ONE not in str(raised.value)


def test_files_that_are_none(tmp_path: Path) -> None:
    file = tmp_path / "encryption.yaml"
    with pytest.raises(EncryptionConfigurationError, match="No such file"):
        read_encryption(file)
    file.write_text(f"a: [{ONE}\nb: }}")
    with pytest.raises(EncryptionConfigurationError, match=r"is not YAML \(line") as raised:
        read_encryption(file)
    assert ONE not in str(raised.value)
    file.write_text("apiVersion: v1\nkind: Secret\nresources: []")
    with pytest.raises(EncryptionConfigurationError, match="a Secret of v1, not an EncryptionConfiguration"):
        read_encryption(file)
