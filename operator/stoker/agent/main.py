"""Entry of the agent: check the configuration, then become the supervisor."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import NoReturn

from stoker.agent.config import CONFIG_ENV, AgentConfig, AgentConfigError


def main() -> int:
    """Replace this process by the agent's supervisor. Returns only on a fault: 1, with one line per fault on stderr.

    The process image is replaced so that nothing that the command line imported stays in memory.
    """
    try:
        config = _configuration()
    except AgentConfigError as error:
        for fault in error.faults:
            print(fault, file=sys.stderr)  # noqa: T201
        return 1
    return _become_supervisor(config.port)


def _become_supervisor(port: int) -> NoReturn:
    command = [sys.executable, "-P", "-m", "stoker.agent.supervisor", str(port)]
    # Where the package lies is known here and need not be known to the interpreter: an image may have it anywhere.
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    os.execve(sys.executable, command, environment)  # noqa: S606 (a list, and no shell)


def _configuration() -> AgentConfig:
    document = os.environ.get(CONFIG_ENV)
    if not document:
        raise AgentConfigError(
            [f"{CONFIG_ENV}: document: is not set; the operator renders it into the agent's container"]
        )
    return AgentConfig.parse(document)


if __name__ == "__main__":
    sys.exit(main())
