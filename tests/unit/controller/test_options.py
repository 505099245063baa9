"""Flags and environment variables."""

from __future__ import annotations

import pytest

from stoker.controller.options import parse_options


def test_flags_win_over_the_environment() -> None:
    environ = {"STOKER_HEALTH_PORT": "1234", "STOKER_NAMESPACES": "a, b,,a", "POD_NAME": "stoker-0"}
    options = parse_options(["--health-port", "0"], environ)
    assert (options.health_port, options.namespaces, options.identity) == (0, ("a", "b"), "stoker-0")


def test_without_anything_all_namespaces_are_served() -> None:
    options = parse_options([], {})
    assert (options.namespaces, options.lease_name, options.health_port, options.metrics_port) == (
        (), "stoker-operator", 8080, 8081,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("argv", "complaint"),
    [
        (["--health-port", "70000"], "is no port"),
        (["--workers", "0"], "is no number from 1"),
        (["--namespaces", "Team_A"], "is not the name of a namespace"),
        (["--log-level", "loud"], "invalid choice"),
        (["--colour"], "unrecognized arguments"),
    ],
)
def test_what_is_not_acceptable_is_said_in_a_line(
    argv: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        parse_options(argv, {})
    assert stopped.value.code == 2
    assert complaint in capsys.readouterr().err


def test_a_wrong_variable_is_refused_like_a_flag(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse_options([], {"STOKER_WORKERS": "many"})
    assert "is no number" in capsys.readouterr().err
