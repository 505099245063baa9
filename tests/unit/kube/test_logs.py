"""The last words of an engine: what the node keeps of them, and the log where the node cut the cause away."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from stoker.kube import logs
from stoker.kube.client import Client
from stoker.kube.logs import LogReader
from stoker.kube.views import MAX_LAST_WORDS, pod_view
from stoker.plan.snapshot import PodView
from stoker.status.case import Case
from stoker.status.diagnosis import diagnose
from stoker.status.text import KEPT_BYTES
from tests.builders.objects import a_stored_pod
from tests.builders.specs import a_spec

KEY = ("team-a", "chat")
LOG = (Path(__file__).parents[2] / "builders/logs/vllm-0.32-kv-cache-too-small.log").read_text()
"""The end of a real one. The server's own end, 5 KiB long, follows the one of its core."""


class Node:
    """A node that gives the end of a log, and counts how often."""

    def __init__(self, text: str) -> None:
        self.text, self.reads = text, 0

    async def log_tail(self, *_: object, max_bytes: int, **__: object) -> str:
        """Return the end of the log."""
        self.reads += 1
        return self.text.encode()[-max_bytes:].decode("utf-8", "replace")


def ended(message: str) -> PodView:
    """A pod whose engine has ended, with the message that the node keeps."""
    state = {"terminated": {"exitCode": 1, "reason": "Error", "message": message}}
    return pod_view(
        a_stored_pod(status={"containerStatuses": [{"name": "engine", "restartCount": 1, "lastState": state}]})
    )


async def read(pod: PodView, node: Node) -> PodView:
    """Complete a pod, and again when the log has been read."""
    told = asyncio.Event()
    reader = LogReader(cast(Client, node), lambda _: told.set())
    running = asyncio.create_task(reader.run())
    if reader.complete(KEY, pod) == pod and reader._asked:
        await asyncio.wait_for(told.wait(), 5)
    running.cancel()
    return reader.complete(KEY, pod)


async def test_a_cause_that_the_node_cut_away_is_found_in_the_log() -> None:
    node = Node(LOG)
    cut = ended(LOG[-KEPT_BYTES:])
    spec = a_spec().set("context.maxLength", 60000).build()
    before = diagnose(Case(cut, spec))
    after = diagnose(Case(await read(cut, node), spec))

    assert before is not None
    assert after is not None
    assert (before.reason, after.reason) == ("Crashed", "KVCacheTooSmall")
    assert "spec.context.maxLength" in after.message
    assert node.reads == 1


@pytest.mark.parametrize("message", ["ValueError: no", "x" * (KEPT_BYTES - 8)], ids=["short", "long"])
async def test_a_message_that_is_whole_is_enough(message: str) -> None:
    node = Node(LOG)
    assert (await read(ended(message), node)).containers[0].last_words == message
    assert node.reads == 0


async def test_a_message_of_as_many_lines_as_a_node_keeps_is_cut_too() -> None:
    node = Node(LOG)
    assert (await read(ended("a\n" * 80), node)).containers[0].last_words == LOG[-MAX_LAST_WORDS:]


async def test_a_log_that_is_gone_leaves_the_message() -> None:
    cut = ended("€" * (KEPT_BYTES // 3))
    assert (await read(cut, Node(""))).containers[0].last_words == cut.containers[0].last_words


def test_what_is_kept_of_a_log_holds_both_ends_of_a_vllm() -> None:
    assert "ValueError: To serve at least one request" in LOG[-MAX_LAST_WORDS:]
    assert "ValueError: To serve at least one request" not in LOG[-KEPT_BYTES:]


async def test_N21_logs_that_nobody_reads_do_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """No node answers: pods that fail meanwhile are asked about later, and no reconcile breaks."""
    monkeypatch.setattr(logs, "MAX_WAITING", 2)
    reader = LogReader(cast(Client, Node(LOG)), lambda _: None)
    cut = ended(LOG[-KEPT_BYTES:])
    for number in range(5):
        pod = replace(cut, uid=f"uid-{number}")
        assert reader.complete(KEY, pod) == pod
    assert len(reader._asked) == 2
