"""`dray` for shells and programs that tests start: has one forked (`dray_forks`), hands signals on, ends as it ends.

    python -IS forked_dray.py SOCKET ARGUMENTS…

Imports next to nothing: that is what makes it quick.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys


def main(door: str, *arguments: str) -> int:
    """The exit code of the command."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as asking:
        asking.connect(door)
        request = json.dumps([arguments, dict(os.environ), os.getcwd()]).encode()
        socket.send_fds(asking, [request], [0, 1, 2])
        pid = int(asking.recv(64))
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, lambda given, _: os.kill(pid, given))
        code = os.waitstatus_to_exitcode(int(asking.recv(64)))
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    return code


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
