"""Files that others might have a hand in, opened so that nobody can point the process elsewhere.

    Directory.open("/var/lib/dray-node")      only its owner, or root, may write there
        .child("pods").child(uid)             each step by file descriptor: no symbolic link is followed
        .create("0.log")                      a new file, or none at all
        .read("0.exit", limit=64)             a regular file of an owner that is trusted

A process with more rights than those around it (the node agent, a driver) opens everything below its directories this
way. Names that come from elsewhere (pods, drivers, checkpoints) are single names: `..`, `/` and the like are refused.
May import nothing of dray; does file I/O.
"""

from dray.files.directory import Directory, UnsafeFile, check_name, is_trusted

__all__ = ["Directory", "UnsafeFile", "check_name", "is_trusted"]
