"""A legacy server of its own kind in front of a real one: what a client sends before the handshake ends it
(`exits`) or is never answered (`silent`). Everything else goes to the command that follows.

    stub.py exits|silent COMMAND…
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading

KIND, *COMMAND = sys.argv[1:]


def main() -> int:
    """Passes lines on until either side ends."""
    first = sys.stdin.buffer.readline()
    while first and json.loads(first).get("method") == "server/discover":
        if KIND == "exits":
            return 1
        first = sys.stdin.buffer.readline()
    if not first:
        return 0
    server = subprocess.Popen(COMMAND, stdin=subprocess.PIPE)
    threading.Thread(target=pass_on, args=(first, server), daemon=True).start()
    return server.wait()


def pass_on(first: bytes, server: subprocess.Popen[bytes]) -> None:
    """Lines of the client to the server; its end ends the server's input."""
    line = first
    while line:
        server.stdin.write(line)
        server.stdin.flush()
        line = sys.stdin.buffer.readline()
    server.stdin.close()


sys.exit(main())
