"""Whom a client certificate names: one user, or nobody."""

from dray.process.certificate_holder import holder

GROUPS = ((("organizationName", "a"),), (("organizationName", "b"),))


def test_one_common_name_is_the_user() -> None:
    assert holder(((("commonName", "alice"),), *GROUPS)) == ("alice", ("a", "b"))


def test_two_common_names_are_nobody() -> None:
    assert holder(((("commonName", "alice"),), (("commonName", "boss"),), *GROUPS)) == ("", ("a", "b"))
    assert holder(((("commonName", "alice"), ("commonName", "boss")),)) == ("", ())


def test_no_common_name_is_nobody() -> None:
    assert holder(GROUPS) == ("", ("a", "b"))
    assert holder(None) == ("", ())
