"""The ``stoker`` command.

``main`` hands over to the two long-running commands before anything of the command line is imported: the agent runs
beside every engine and needs nothing of it, and the operator reads its own arguments.
"""

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command that the arguments name, and exit with its code."""
    command = sys.argv[1] if len(sys.argv) > 1 else ""
    if command == "agent":
        from stoker.agent.main import main as run_agent

        sys.exit(run_agent())
    if command == "operator":
        from stoker.controller.main import main as run_operator

        sys.exit(run_operator())
    from stoker.cli.app import run

    sys.exit(run())
