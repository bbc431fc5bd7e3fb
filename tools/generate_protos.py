"""Makes the gRPC message modules: `python -m tools.generate_protos`, in the root of the repository.

Every `plugins/protos/*.proto` becomes `plugins/generated/*_pb2.py` and a `.pyi` with its types, and so in `store/etcd`.
Services need no generated code: `dray.plugins.contracts` and `dray.store.etcd.calls` name their methods. With `--check`
nothing is written; the exit code is 1 if a file is out of date, and its name is printed.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from grpc_tools import protoc

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src"
PACKAGES = ("dray/plugins", "dray/store/etcd")
"""Each has its protos in `protos`, and what is made of them in `generated`."""


def main(arguments: list[str]) -> int:
    """Writes or checks every file; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tools.generate_protos", description="Makes the gRPC messages.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a file is out of date")
    options = parser.parse_args(arguments)
    stale = {path: text for path, text in generate().items() if not path.exists() or path.read_text() != text}
    for path, text in stale.items():
        print(path.relative_to(ROOT))
        if not options.check:
            path.write_text(text)
    return 1 if stale and options.check else 0


def generate() -> dict[Path, str]:
    """The text of every generated file, by where it belongs. Raises RuntimeError if a proto cannot be compiled."""
    return {path: text for package in PACKAGES for path, text in _generate(package).items()}


def _generate(package: str) -> dict[Path, str]:
    protos, made_in = SOURCE / package / "protos", f"{package}/generated"
    with tempfile.TemporaryDirectory() as directory:
        # The protos appear to the compiler in the package of its output, so that generated modules import each other.
        command = ["protoc", f"-I{made_in}={protos}", f"--python_out={directory}", f"--pyi_out={directory}"]
        names = [f"{made_in}/{proto.name}" for proto in sorted(protos.glob("*.proto"))]
        if protoc.main([*command, *names]) != 0:
            raise RuntimeError("protoc failed; see above")
        made = sorted(Path(directory, made_in).iterdir())
        return {SOURCE / made_in / path.name: path.read_text() for path in made}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
