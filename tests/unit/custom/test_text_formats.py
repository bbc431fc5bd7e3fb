"""Formats of texts, as kube-apiserver 1.37 takes them: each was compared with it."""

from __future__ import annotations

import pytest

from dray.custom.text_formats import text_format


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("hostname", ("a", "1", "a-", "a.bc", "a.b.co", "é.com", "$a", "x" * 63), ("a.b", "a_b", "a..bc", "my-host")),
        ("hostname", ("my-host.com",), ("", "-a", "a.b.", "1.2.3.4", "x" * 64, "-a.com", "a-.com", "a." + "b" * 64)),
        ("ipv4", ("1.2.3.4", "01.2.3.4", "::ffff:1.2.3.4"), ("1.2.3", "1.2.3.256", "::1", "0" * 5000 + ".1.2.3")),
        ("ipv6", ("::1", "::ffff:1.2.3.4"), ("fe80::1%eth0", "1.2.3.4")),
        (
            "mac",
            ("01:02:03:04:05:06", "01-02-03-04-05-06", "0102.0304.0506", "010203040506"),
            ("01:02-03:04:05:06", "0"),
        ),
        ("email", ("a@b", "Joe <a@b.co>"), ("@b", "a@", "a b@c.d", "<a@b")),
        ("duration", ("5m", "1.5h", "-5m", "2 weeks", "1h 30m", "3d", "P1D"), ("", "5", "m", "5 x")),
        ("ssn", ("111-11-1111", "111 11 1111"), ("111111111",)),
    ],
)
def test_formats(name: str, good: tuple[str, ...], bad: tuple[str, ...]) -> None:
    holds = text_format(name)
    assert holds is not None
    assert [text for text in good if not holds(text)] == []
    assert [text for text in bad if holds(text)] == []
