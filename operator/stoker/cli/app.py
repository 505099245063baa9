"""The commands. Each imports what it needs when it runs."""

import sys
from enum import StrEnum
from typing import Annotated

import typer

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)

INTERNAL_FAULT = 70
"""Exit code of a fault of this program (``EX_SOFTWARE``)."""

OUTPUT_FAULT = 74
"""Exit code where standard output takes nothing (``EX_IOERR``)."""

_LINES = "one line for each fault on standard error"
_OTHERS = f"2 bad usage; {INTERNAL_FAULT} a fault of this program; {OUTPUT_FAULT} the output cannot be written"

Files = Annotated[
    list[str],
    typer.Option(
        "--file", "-f", help="File with one InferenceService; - is standard input; repeatable.", metavar="FILE"
    ),
]
ModelConfig = Annotated[
    str | None, typer.Option(help="The model's config.json; stands for spec.model.facts.", metavar="FILE")
]
Nodes = Annotated[str | None, typer.Option(help="Nodes, as kubectl get nodes -o yaml writes them.", metavar="FILE")]


class Format(StrEnum):
    """Ways to print a plan."""

    TABLE = "table"
    JSON = "json"


def run() -> int:
    """Run the command line; return the exit code.

    0 done, 1 bad input, 2 bad usage, 70 a fault of this program, 74 the output cannot be written.
    """
    from stoker.cli.output import one_line

    if sys.stdout is None:
        return _cannot_write("it is closed")
    try:
        code = _code_of_command()
        sys.stdout.flush()
    except OSError as error:  # those of inputs are told as faults of their files
        sys.stdout = None  # at its end Python would try once more, and say so its own way
        if isinstance(error, BrokenPipeError):
            return 1  # whoever reads has seen enough
        return _cannot_write((error.strerror or type(error).__name__).lower())
    except Exception as error:
        message = one_line(f"{type(error).__name__}: {error}")
        print(f"stoker: a fault of this program, please report it: {message}", file=sys.stderr)
        return INTERNAL_FAULT
    return code


def _code_of_command() -> int:
    try:
        app()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


def _cannot_write(why: str) -> int:
    print(f"stoker: the output cannot be written: {why}", file=sys.stderr)
    return OUTPUT_FAULT


@app.command(epilog=f"Exit code: 0 printed; 1 bad input, or a layout that does not fit: {_LINES}; {_OTHERS}")
def render(file: Files, model_config: ModelConfig = None, nodes: Nodes = None) -> None:
    """Print what a first apply creates, as YAML. Needs no cluster."""
    from stoker.cli.render import render_files

    raise typer.Exit(render_files(file, model_config, nodes))


@app.command(
    epilog=f"Exit code: 0 planned, whatever the verdict (TooSmall too: read it); 1 bad input: {_LINES}; {_OTHERS}"
)
def plan(
    file: Files,
    model_config: ModelConfig = None,
    nodes: Nodes = None,
    output: Annotated[Format, typer.Option("--output", "-o", help="How to print it.")] = Format.TABLE,
) -> None:
    """Print how the model fits its GPUs: the arithmetic, and where each input came from. Needs no cluster."""
    from stoker.cli.plan import plan_files

    raise typer.Exit(plan_files(file, model_config, nodes, as_json=output == Format.JSON))


@app.command()
def version() -> None:
    """Print the version."""
    from stoker import __version__

    print(__version__)


@app.command()
def operator() -> None:
    """Run the operator in a cluster."""
    from stoker.controller.main import main

    raise typer.Exit(main())


@app.command()
def agent() -> None:
    """Run the agent beside an engine."""
    from stoker.agent.main import main

    raise typer.Exit(main())
