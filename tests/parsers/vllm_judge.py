"""vLLM's own parser as a judge. Run by the Python of an environment that has vLLM; it needs no GPU.

Reads one JSON document, ``{"lists": [[argument, ...], ...]}``: what follows ``vllm serve`` on a command line. Writes
``{"version", "options", "verdicts"}``: every option string with its number of values, and for each list whether it was
accepted, the parser's words, and which settings it changed.
"""

import argparse
import contextlib
import importlib.metadata
import io
import json
import sys
from collections.abc import Iterator
from typing import Any


def _parser() -> tuple[Any, Any]:
    """Return the parser of the whole command line, as the console script makes it, and the check that follows it."""
    from vllm.entrypoints.cli.serve import ServeSubcommand, validate_parsed_serve_args

    try:
        from vllm.utils.argparse_utils import FlexibleArgumentParser
    except ImportError:
        from vllm.utils import FlexibleArgumentParser  # type: ignore[attr-defined, no-redef, unused-ignore]
    parser = FlexibleArgumentParser(prog="vllm")
    ServeSubcommand().subparser_init(parser.add_subparsers(dest="subparser"))
    return parser, validate_parsed_serve_args


def _options(parser: Any) -> Iterator[tuple[str, str]]:
    (commands,) = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    for action in commands.choices["serve"]._actions:
        for option in action.option_strings:
            yield option, "1" if action.nargs is None else str(action.nargs)


def _judge(parser: Any, check: Any, arguments: list[str], plain: dict[str, str]) -> dict[str, Any]:
    words = io.StringIO()
    with contextlib.redirect_stderr(words), contextlib.redirect_stdout(words):
        try:
            settings = parser.parse_args(["serve", *arguments])
            check(settings)
        except (SystemExit, Exception) as error:
            told = words.getvalue().strip().splitlines()[-1:] or [repr(error)]
            return {"accepted": False, "words": told[0], "changed": {}}
    values = _values(settings)
    return {"accepted": True, "words": "", "changed": {k: v for k, v in values.items() if plain.get(k) != v}}


def _values(settings: argparse.Namespace) -> dict[str, str]:
    return {name: repr(value) for name, value in vars(settings).items()}


def main() -> None:
    """Judge the lists on standard input."""
    request = json.load(sys.stdin)
    with contextlib.redirect_stdout(sys.stderr):
        parser, check = _parser()
    plain = _values(parser.parse_args(["serve", "a/model"]))
    verdicts = [_judge(parser, check, arguments, plain) for arguments in request["lists"]]
    version = importlib.metadata.version("vllm")
    json.dump({"version": version, "options": dict(_options(parser)), "verdicts": verdicts}, sys.stdout)


if __name__ == "__main__":
    main()
