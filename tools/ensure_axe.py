"""Fetches axe-core, with which tests look whether the page can be used by everybody, into the virtual environment.

From the npm registry that npm is configured for, one version with one digest; nothing of it runs here, and nothing of
it ships. `python tools/ensure_axe.py [DIR]`, by default `.venv/axe-core`.
"""

from __future__ import annotations

import base64
import hashlib
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

VERSION = "4.14.0"
INTEGRITY = "9WTZxEjsZ7b13TH8JPmbV2z8CHbl80/2hm3XPEG4JgNdQLK81IBRXmSxHfMAOkSqQeRxT/0dwNDz2GOm3zzpcQ=="
"""SHA-512, as package-lock.json has it."""
ROOT = Path(__file__).parents[1]


def main() -> None:
    """Does nothing if it is there."""
    place = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / ".venv" / "axe-core"
    script = place / f"axe-{VERSION}.min.js"
    if script.exists():
        return
    with tempfile.TemporaryDirectory() as folder:
        command = ["npm", "pack", "--silent", "--pack-destination", folder, f"axe-core@{VERSION}"]
        try:
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        except (OSError, subprocess.CalledProcessError) as error:
            raise SystemExit(f"cannot get axe-core {VERSION} with npm: {error}") from None
        (package,) = Path(folder).iterdir()
        data = package.read_bytes()
        found = base64.b64encode(hashlib.sha512(data).digest()).decode()
        if found != INTEGRITY:
            raise SystemExit(f"axe-core {VERSION} is not what it was: sha512-{found} instead of sha512-{INTEGRITY}")
        with tarfile.open(package) as archive:
            source = archive.extractfile("package/axe.min.js")
            assert source is not None
            text = source.read()
    place.mkdir(parents=True, exist_ok=True)
    script.write_bytes(text)


if __name__ == "__main__":
    main()
