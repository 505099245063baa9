"""Which line of an engine's end is passed on, and what is said where none of them names a cause."""

from __future__ import annotations

import pytest

from stoker.status.case import Case
from stoker.status.diagnosis import diagnose
from stoker.status.text import KEPT_BYTES, telling_line, untold
from tests.builders import last_words as said
from tests.builders.failures import crashed

DIED = "(EngineCore pid=9) INFO 11-30 01:04:26 [multiproc_executor.py:486] [shutdown] Executor: all workers exited"


def test_the_end_of_a_vllm_whose_core_failed_first_is_told_for_what_it_is() -> None:
    """The node keeps 2048 bytes, which the server's own traceback fills; `raise RuntimeError(` is no cause."""
    assert len(said.VLLM_CORE_FAILED) == KEPT_BYTES
    assert telling_line(said.VLLM_CORE_FAILED) is None
    diagnosis = diagnose(Case(crashed(said.VLLM_CORE_FAILED)))
    assert diagnosis is not None
    assert diagnosis.message == (
        "the engine ended with exit code 1; its core failed first, and the end of the log that the node keeps does not "
        "say why; look at its log (kubectl logs --previous)"
    )


@pytest.mark.parametrize(
    "ending",
    [
        "    raise RuntimeError(\n",
        "(APIServer pid=1)     raise RuntimeError(\n",
        "(APIServer pid=1) Traceback (most recent call last):\n",
        '(APIServer pid=1)   File "/usr/local/bin/vllm", line 10, in <module>\n',
        "             ^^^^^^^^^^^^\n",
        "  warnings.warn('resource_tracker: There appear to be %d '\n",
        "/usr/lib/python3.12/multiprocessing/resource_tracker.py:254: UserWarning: resource_tracker: 1 leaked\n",
        "(EngineCore pid=9) ERROR 11-30 01:04:26 [core.py:1510]     raise ValueError(\n",
    ],
)
def test_a_line_of_a_traceback_is_never_the_cause(ending: str) -> None:
    assert telling_line(ending) is None
    assert telling_line(f"{DIED}\n{ending}") == "[shutdown] Executor: all workers exited"


def test_the_error_under_a_traceback_is_the_cause_whatever_follows() -> None:
    words = f"Traceback (most recent call last):\n    raise ValueError(\nValueError: too small\n{said.VLLM_CORE_FAILED}"
    assert telling_line(words) == "ValueError: too small"


def test_a_first_line_that_lost_its_beginning_is_not_passed_on() -> None:
    rest = '  File "x.py", line 1, in f\n' * 100
    assert telling_line(f"f of a line\n{rest}") is None
    assert telling_line(f"a whole line\n{rest[:200]}") == "a whole line"
    assert telling_line("one line only " * 200) is not None


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("", "it said nothing"),
        (" \n", "it said nothing"),
        ("    x = 1\n", "the end of the log that the node keeps does not say why"),
    ],
)
def test_what_is_not_told_is_said(words: str, told: str) -> None:
    assert untold(words) == told
