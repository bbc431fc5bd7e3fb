"""Static bearer tokens in Kubernetes' CSV format: one `token,user,uid,"group1,group2"` per line, groups optional."""

from __future__ import annotations

import csv
import io
import os

from dray.server.security.identity import Identity, authenticated

MAX_FILE_BYTES = 4 * 1024 * 1024


class TokenFileError(Exception):
    """The file cannot be read or a line is wrong. The message names both."""


def read_token_file(path: str | os.PathLike[str]) -> dict[str, Identity]:
    """The identities of a token file by token. Raises TokenFileError."""
    try:
        with open(path, "rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise TokenFileError(f"cannot read token file {path}: {(error.strerror or str(error)).lower()}") from error
    if len(data) > MAX_FILE_BYTES:
        raise TokenFileError(f"token file {path} is larger than {MAX_FILE_BYTES} bytes")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise TokenFileError(f"{path}:{line}: not UTF-8") from error
    return parse_token_file(text, str(path))


def parse_token_file(text: str, source: str) -> dict[str, Identity]:
    """As `read_token_file`, of the text of a file that errors call `source`. Messages never contain a token."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    identities: dict[str, Identity] = {}
    line_of: dict[str, int] = {}
    line = 1
    try:
        for columns in reader:
            if any(column.strip() for column in columns):
                token, identity = _entry(columns, f"{source}:{line}")
                if token in identities:
                    raise TokenFileError(f"{source}:{line}: the same token stands on line {line_of[token]} already")
                identities[token], line_of[token] = identity, line
            line = reader.line_num + 1
    except csv.Error as error:
        raise TokenFileError(f"{source}:{line}: not CSV: {error}") from error
    return identities


def _entry(columns: list[str], place: str) -> tuple[str, Identity]:
    if len(columns) < 3:
        raise TokenFileError(f"{place}: expected token,user,uid and optionally groups, found {len(columns)} column(s)")
    if len(columns) > 4:
        raise TokenFileError(
            f'{place}: expected at most 4 columns, found {len(columns)}; put several groups in quotes: "group1,group2"'
        )
    token, user, uid = (column.strip() for column in columns[:3])
    if not token:
        raise TokenFileError(f"{place}: the token is empty")
    if not (token.isascii() and token.isprintable()) or " " in token or "," in token:
        raise TokenFileError(f"{place}: the token has characters that an HTTP header cannot carry")
    if not user:
        raise TokenFileError(f"{place}: the user name is empty")
    groups = columns[3].split(",") if len(columns) == 4 else []
    return token, authenticated(user, (group.strip() for group in groups), uid)
