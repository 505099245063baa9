"""What ``stoker agent`` says of itself. It takes no arguments: only where there are some is any of this imported."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import NoReturn

from stoker.agent.config import CONFIG_ENV

_DESCRIPTION = (
    "Run the agent beside an engine: it answers the probes of the engine's container, warms the engine up, drains it "
    "before it stops, and gives every engine the same metrics. The operator starts it in each pod."
)
_EPILOG = (
    f"Environment: {CONFIG_ENV} holds the whole configuration as one JSON document, which the operator renders. "
    "Exit code: 0 stopped by SIGTERM or SIGINT; 1 the configuration cannot be used, one line for each fault on "
    "standard error, or the port cannot be listened on; 2 bad usage."
)


def explain(arguments: Sequence[str]) -> NoReturn:
    """Print the help, or that there is no such argument. Exits with code 0 or 2."""
    parser = argparse.ArgumentParser(prog="stoker agent", description=_DESCRIPTION, epilog=_EPILOG)
    parser.parse_args(list(arguments))
    parser.error("it takes no arguments")
