"""Ports on loopback for several control planes side by side."""

import itertools
import os
import socket

# Below the kernel's range for outgoing connections, so that none of those takes a port between its choice and its use.
FIRST, LAST = 20000, 32000
# Starting from the process id keeps runs that begin together apart; going on from the last one, those of one process.
_CURSOR = itertools.count(os.getpid() * 97)


def free_ports(count: int, host: str = "127.0.0.1") -> list[int]:
    """Distinct ports that nothing listens on. Raises OSError when there are not enough."""
    span = LAST - FIRST
    candidates = (FIRST + next(_CURSOR) % span for _ in range(span))
    found = list(itertools.islice((port for port in candidates if _is_free(host, port)), count))
    if len(found) < count:
        raise OSError(f"fewer than {count} of the ports {FIRST} to {LAST} on {host} are free")
    return found


def _is_free(host: str, port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True
