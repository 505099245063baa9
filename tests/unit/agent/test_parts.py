"""The small parts of the agent: warm-up requests, model lists, the state file, reasons, logs."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.agent.config import BUILT_IN_PROMPTS, WarmupConfig
from stoker.agent.engine import Answer, model_names
from stoker.agent.listener import Listener
from stoker.agent.logs import JsonFormatter
from stoker.agent.server import REASON_LIMIT, one_line
from stoker.agent.state import State
from stoker.agent.store import FILE_NAME, Saved, Store, resume, snapshot
from stoker.agent.warmup import WarmupPlan, fault_of, warm_up

ANSWER = Answer(200, b'{"choices": [{}]}')


class Recorder:
    """Takes requests and gives the answers it was told to give, in turn."""

    def __init__(self, *answers: Answer | Exception) -> None:
        self.answers = list(answers)
        self.sent: list[tuple[str, dict[str, Any]]] = []

    async def post(self, path: str, body: dict[str, Any], limit_seconds: float) -> Answer:
        self.sent.append((path, body))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def plan(**values: Any) -> WarmupPlan:
    return WarmupPlan.of("m", WarmupConfig(**values))


async def test_prompts_are_taken_in_turn() -> None:
    recorder = Recorder(ANSWER, ANSWER, ANSWER)
    result = await warm_up(recorder, plan(requests=3, prompts=("a", "b"), max_tokens=5), 10)
    assert (result.done, result.detail) == (True, "3 requests were answered")
    assert [body["messages"][0]["content"] for _, body in recorder.sent] == ["a", "b", "a"]
    assert all((body["model"], body["max_tokens"]) == ("m", 5) for _, body in recorder.sent)


def test_without_prompts_of_the_user_there_are_two_built_in() -> None:
    assert [plan(requests=2).prompt(index) for index in range(2)] == list(BUILT_IN_PROMPTS)


@pytest.mark.parametrize("status", [400, 404, 422, 500, 501])
async def test_where_a_chat_is_not_possible_a_completion_is_asked_for(status: int) -> None:
    recorder = Recorder(Answer(status, b"no template"), ANSWER)
    assert (await warm_up(recorder, plan(prompts=("a",)), 10)).done
    (_, (path, body)) = recorder.sent
    assert (path, body["prompt"]) == ("/v1/completions", "a")


async def test_an_engine_over_its_limit_is_asked_again_later_and_not_otherwise() -> None:
    recorder = Recorder(Answer(503, b"busy"))
    result = await warm_up(recorder, plan(), 10)
    assert (result.done, result.unanswered, result.detail) == (False, False, "request 1 of 1: HTTP 503: busy")


async def test_silence_and_a_fault_are_told_apart() -> None:
    silent = await warm_up(Recorder(ANSWER, TimeoutError()), plan(requests=2), 10)
    assert (silent.unanswered, silent.detail) == (True, "request 2 of 2: no answer within 10 s")
    broken = await warm_up(Recorder(ConnectionResetError("reset")), plan(), 10)
    assert (broken.unanswered, broken.detail) == (False, "request 1 of 1: reset")


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"{}", b'{"choices": []}', b'{"choices": 1}', b"[" * 100_000])
def test_an_answer_without_a_choice_is_none(body: bytes) -> None:
    assert fault_of(Answer(200, body)) is not None


@pytest.mark.parametrize(
    ("body", "names"),
    [
        (b'{"data": [{"id": "a"}, {"id": "b"}]}', {"a", "b"}),
        (b'{"data": [{"id": "a", "aliases": ["b", 3]}]}', {"a", "b"}),
        (b'{"data": [{"id": 1}, 2, null]}', set()),
        (b'{"data": {}}', set()),
        (b"[]", set()),
        (b"<html>", set()),
        (b"[" * 100_000, set()),
    ],
)
def test_names_in_a_model_list(body: bytes, names: set[str]) -> None:
    assert model_names(body) == names


# ---- the state file -------------------------------------------------------------------------------------------------

UP = Listener(known=True, identity="i")
WARM = Saved(incarnation=4, identity="i", started=True, warm=True)


def test_what_is_stored_comes_back(tmp_path: Path) -> None:
    store = Store(tmp_path)
    assert store.load() is None
    assert store.save(WARM)
    assert store.load() == WARM
    assert [path.name for path in tmp_path.iterdir()] == [FILE_NAME]


def test_the_stored_file_is_replaced_and_never_written_into(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.save(WARM)
    with store.path.open() as before:
        store.save(Saved(incarnation=5))
        assert Saved.model_validate_json(before.read()) == WARM
    assert store.load() == Saved(incarnation=5)


@pytest.mark.parametrize(
    ("saved", "listener", "incarnation", "warm"),
    [
        (None, UP, 1, False),
        (WARM, UP, 4, True),
        (WARM.model_copy(update={"warm": False}), UP, 4, False),
        (WARM.model_copy(update={"started": False}), UP, 4, False),
        (WARM, Listener(known=True, identity="other"), 5, False),
        (WARM, Listener(known=True), 5, False),
        (WARM, Listener(known=False), 5, False),
        (Saved(incarnation=4), UP, 4, False),
        (Saved(incarnation=4, started=True, warm=True), Listener(known=False), 5, False),
    ],
)
def test_only_the_same_socket_is_the_same_incarnation(
    saved: Saved | None, listener: Listener, incarnation: int, warm: bool
) -> None:
    state = resume(saved, listener, now=9.0)
    assert (state.incarnation, state.warm, state.since) == (incarnation, warm, 9.0)


@given(st.integers(1, 99), st.booleans(), st.booleans())
def test_a_state_survives_being_stored(incarnation: int, started: bool, warm: bool) -> None:
    state = State(incarnation, 0.0, "i", listening=True, started_at=1.0 if started else None, warm=started and warm)
    again = resume(snapshot(state), UP, now=1.0)
    assert (again.incarnation, again.started, again.warm, again.listening) == (incarnation, started, state.warm, True)


# ---- what people read -----------------------------------------------------------------------------------------------


@given(st.text())
def test_N20_a_reason_is_one_bounded_line(text: str) -> None:
    line = one_line(text)
    assert len(line.splitlines()) <= 1
    assert len(line) <= REASON_LIMIT
    assert "\x1b" not in line


@given(st.text(), st.text())
def test_N20_a_log_record_is_one_line_of_json(message: str, extra: str) -> None:
    record = logging.makeLogRecord({"msg": "%s", "args": (message,), "reason": extra, "levelname": "INFO"})
    line = JsonFormatter().format(record)
    assert len(line.splitlines()) == 1
    assert {"message": message, "reason": extra, "level": "info"}.items() <= json.loads(line).items()
