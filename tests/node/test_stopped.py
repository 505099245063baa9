"""What became of engines of which a process was stopped before (`stopped.py`): each was found, and healed."""

from pathlib import Path

from tests.node.stopped import EVIDENCE_SECONDS, HANG_SECONDS, Stopped, StoppedEngines
from tests.node.vllm_cpu import START_SECONDS


def healed(stopped: Stopped) -> None:
    """The engine was restarted within its bound, and not before there was evidence; it is warm again."""
    took = stopped.await_restart()
    assert EVIDENCE_SECONDS < took < HANG_SECONDS
    assert stopped.was_found_unready(within=took)
    assert not Path(f"/proc/{stopped.process}").exists()
    stopped.await_ready(took, START_SECONDS)
    assert stopped.namespace.agent_status(stopped.namespace.the_pod(stopped.service))["warm"]
    stopped.namespace.await_condition("Warm", "True", stopped.service)


def test_llama_cpp_is_restarted(stopped_engines: StoppedEngines) -> None:
    healed(stopped_engines.llama_cpp)
    assert "health path has failed" in stopped_engines.llama_cpp.agent_log()


def test_vllm_whose_core_stopped_under_a_request_is_restarted(stopped_engines: StoppedEngines) -> None:
    healed(stopped_engines.core)
    assert "no token or step was counted" in stopped_engines.core.agent_log()


def test_vllm_whose_server_stopped_is_restarted(stopped_engines: StoppedEngines) -> None:
    healed(stopped_engines.server)
    assert "health path has failed" in stopped_engines.server.agent_log()
