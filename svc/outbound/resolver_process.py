"""The helper process of svc/outbound/resolver.py: resolves host names, each in a child process that ends in time.

stdin: a line `NUMBER HOST` for each name. stdout: a line `NUMBER ADDRESS ...` for each, without an address if there is
none. It imports as little as possible, because each child starts as a copy of it.
"""

import os
import signal
import socket
import sys

_MOST_ADDRESSES = 64  # a pipe keeps lines of up to 4 KiB whole


def main() -> None:
    """Resolve names until stdin ends. The argument is how many seconds a name may take."""
    seconds = float(sys.argv[1])
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # no child is left as a zombie
    for line in sys.stdin.buffer:
        number, host = line.split()
        try:
            child = os.fork()
        except OSError:  # too many processes
            _answer(number, [])
            continue
        if child == 0:
            signal.setitimer(signal.ITIMER_REAL, seconds)  # SIGALRM ends the process, whatever it waits for
            _answer(number, _addresses(host))
            os._exit(0)


def _addresses(host: bytes) -> list[str]:
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError:
        return []
    return [str(entry[4][0]) for entry in found[:_MOST_ADDRESSES]]


def _answer(number: bytes, addresses: list[str]) -> None:
    os.write(sys.stdout.fileno(), b"%s %s\n" % (number, " ".join(addresses).encode()))


if __name__ == "__main__":
    main()
