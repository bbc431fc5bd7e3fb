"""Reads a database file in a process of its own, because damage in a memory-mapped file can kill its reader.

A truncated file raises SIGBUS and a wrong page number may raise SIGSEGV; neither can be caught. The probe dies in
our place, and we say what is wrong. It costs a few ten milliseconds, so a file that was closed properly and not
touched since (its *seal* fits) is not probed.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from dray.store.errors import Corrupt

_SCRIPT = """
import sys, lmdb
env = lmdb.open(sys.argv[1], subdir=False, readonly=True, lock=False, max_dbs=2)
with env.begin() as txn:
    for name in (b"log", b"meta"):
        for key, value in txn.cursor(env.open_db(name, txn=txn, create=False)):
            pass
"""


def probe(file: Path) -> None:
    """Read the whole file. Raises `Corrupt`."""
    if file.stat().st_size == 0:
        raise Corrupt(file, "it is empty")
    command = [sys.executable, "-c", _SCRIPT, os.fspath(file)]
    child = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    if child.returncode < 0:
        raise Corrupt(file, f"reading it ends in {signal.Signals(-child.returncode).name}")
    if child.returncode > 0:
        lines = child.stderr.decode(errors="replace").strip().splitlines()
        raise Corrupt(file, lines[-1] if lines else f"reading it fails with code {child.returncode}")


def write_seal(file: Path, seal: Path) -> None:
    """Note how the closed file looks."""
    seal.write_text(_looks(file))
    seal.chmod(0o600)


def take_seal(file: Path, seal: Path) -> bool:
    """Whether the file still looks as it was sealed. The seal is gone afterwards: the file is open again."""
    try:
        sealed = seal.read_text()
        seal.unlink()
    except OSError:
        return False
    return sealed == _looks(file)


def _looks(file: Path) -> str:
    stat = file.stat()
    return f"{stat.st_ino} {stat.st_size} {stat.st_mtime_ns}\n"
