from __future__ import annotations

from pathlib import Path

import pytest

from dray.server.security.identity import Identity
from dray.server.security.token_file import TokenFileError, parse_token_file, read_token_file


def test_tokens_users_and_groups() -> None:
    text = 'secret-1,alice,1,"dev, ops"\r\n\nsecret-2,bob,2\nsecret-3,carol,,system:masters\n'
    assert parse_token_file(text, "tokens.csv") == {
        "secret-1": Identity("alice", ("dev", "ops", "system:authenticated"), "1"),
        "secret-2": Identity("bob", ("system:authenticated",), "2"),
        "secret-3": Identity("carol", ("system:masters", "system:authenticated")),
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("token,alice", "tokens.csv:1: expected token,user,uid and optionally groups, found 2 column"),
        ("t1,alice,1\n# comment", "tokens.csv:2: expected token,user,uid"),
        ("t1,alice,1,dev,ops", 'tokens.csv:1: expected at most 4 columns, found 5; put several groups in quotes: "'),
        (",alice,1", "tokens.csv:1: the token is empty"),
        ("t1,,1", "tokens.csv:1: the user name is empty"),
        ("t 1,alice,1", "tokens.csv:1: the token has characters that an HTTP header cannot carry"),
        ("tökén,alice,1", "tokens.csv:1: the token has characters that an HTTP header cannot carry"),
        ("t1,alice,1\n\nt2,bob,2\nt1,eve,3", "tokens.csv:4: the same token stands on line 1 already"),
        ('t1,alice,1,"dev\nt2,bob,2', "tokens.csv:1: not CSV: "),
        ('t1,alice,1,"a\nb"\nt2', "tokens.csv:3: expected token,user,uid"),
    ],
)
def test_mistakes_are_named_by_line_and_never_show_the_token(text: str, message: str) -> None:
    with pytest.raises(TokenFileError) as caught:
        parse_token_file(text, "tokens.csv")
    assert str(caught.value).startswith(message)
    assert "t1" not in str(caught.value)


def test_files(tmp_path: Path) -> None:
    path = tmp_path / "tokens.csv"
    with pytest.raises(TokenFileError, match=r"cannot read token file .*tokens.csv: no such file"):
        read_token_file(path)
    path.write_bytes(b"\xef\xbb\xbfsecret,alice,1\n")
    assert read_token_file(path)["secret"].user == "alice"
    path.write_bytes(b"secret,alice,1\nother,\xff,2\n")
    with pytest.raises(TokenFileError, match=r"tokens.csv:2: not UTF-8"):
        read_token_file(path)
