"""`python -m clusters`: bring a cluster up and down, look at it, put images into it, run commands in its network."""

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from clusters import binaries, debian, images, lifetime, local, providers
from clusters.errors import ClusterError
from clusters.providers import Provider

Action = Callable[[Provider, argparse.Namespace], int]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status. What went wrong is printed without a traceback."""
    given = _parser().parse_args(arguments)
    lifetime.end_with_parent()
    try:
        if given.command in PREPARATIONS:
            PREPARATIONS[given.command](given)
            return 0
        action: Action = ACTIONS[given.command]
        return action(providers.choose(given.provider, given.name), given)
    except ClusterError as error:
        print(f"clusters: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def _build(given: argparse.Namespace) -> None:
    binaries.ensure(given.names or binaries.BY_NAME)


def _prepare(_: argparse.Namespace) -> None:
    binaries.ensure(binaries.CONTROL_PLANE)
    debian.ensure()
    images.ensure_base()
    binaries.ensure(binaries.TESTS)


def _up(provider: Provider, _: argparse.Namespace) -> int:
    provider.up()
    print(f"export KUBECONFIG={provider.kubeconfig}")
    return 0


def _down(provider: Provider, given: argparse.Namespace) -> int:
    was_there = provider.is_up()
    provider.down()
    local.sweep()
    if provider.is_up():
        print(f"{provider.status()}, and is left as it is")
    else:
        print(f"cluster {given.name} {'is removed' if was_there else 'was not up; nothing of it is left'}")
    return 0


def _status(provider: Provider, _: argparse.Namespace) -> int:
    print(provider.status())
    return 0 if provider.is_up() else 1


def _load_image(provider: Provider, given: argparse.Namespace) -> int:
    provider.load_image(given.archive)
    return 0


def _exec(provider: Provider, given: argparse.Namespace) -> int:
    command = [*provider.enter(), *given.words]
    os.execvpe(command[0], command, {**os.environ, "KUBECONFIG": str(provider.kubeconfig)})  # noqa: S606


PREPARATIONS: dict[str, Callable[[argparse.Namespace], None]] = {"build": _build, "prepare": _prepare}
ACTIONS: dict[str, Action] = {"up": _up, "down": _down, "status": _status, "load-image": _load_image, "exec": _exec}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m clusters", description=__doc__)
    parser.add_argument("--provider", choices=providers.NAMES, default=os.environ.get("CLUSTER") or None)
    parser.add_argument("--name", default="stoker-demo", help="the cluster's name (default: stoker-demo)")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("up", help="bring it up; nothing happens where it is up")
    commands.add_parser("down", help="remove it; its images and its last logs stay in the cache")
    commands.add_parser("status", help="show its parts; status 1 unless all run")
    commands.add_parser("prepare", help="install, download and build all that a local cluster needs")
    build = commands.add_parser("build", help="build the programs of the local cluster")
    build.add_argument("names", nargs="*", help=f"of {', '.join(binaries.BY_NAME)} (default: all)")
    load = commands.add_parser("load-image", help="put an image archive where the node finds it")
    load.add_argument("archive", type=Path)
    execute = commands.add_parser("exec", help="run a command in the cluster's network")
    execute.add_argument("words", nargs="+", metavar="-- COMMAND")
    return parser


if __name__ == "__main__":
    sys.exit(main())
