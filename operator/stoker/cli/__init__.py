"""The ``stoker`` command.

``main`` hands over to the two long-running commands before anything of the command line is imported: the agent runs
beside every engine and needs nothing of it, and the operator reads its own arguments.
"""

import signal
import sys

from stoker.agent import STOP_SIGNALS

__all__ = ["main"]


def main() -> None:
    """Run the command that the arguments name, and exit with its code."""
    command = sys.argv[1] if len(sys.argv) > 1 else ""
    if command == "agent" and sys.argv[2:]:
        from stoker.cli.agent import explain

        explain(sys.argv[2:])
    if command == "agent":
        # Whoever is the first process of a container loses a signal that it does not handle yet; one that it holds back
        # waits for the supervisor. A pod that is deleted as it starts would else live on for its whole grace period.
        signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
        from stoker.agent.main import main as run_agent

        sys.exit(run_agent())
    if command == "operator":
        from stoker.controller.main import main as run_operator

        sys.exit(run_operator())
    from stoker.cli.app import run

    sys.exit(run())
