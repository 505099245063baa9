"""Processes of engines are stopped, which is no evidence of a hang yet. `test_stopped.py` says what became of them."""

import time

from tests.node.stopped import StoppedEngines
from tests.node.support import throughout

NO_HANG = "no evidence of a hang"


def test_a_process_that_has_just_stopped_is_no_evidence(stopped_engines: StoppedEngines) -> None:
    engines = (stopped_engines.llama_cpp, stopped_engines.core, stopped_engines.server)
    with throughout(lambda: all(each.liveness() == NO_HANG for each in engines), NO_HANG, every=2):
        time.sleep(10)
