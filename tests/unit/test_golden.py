"""Golden files, and what holds for every one of them."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.golden.harness import ROOT, cases, expected_file, golden, objects, render

SEEDS = ("0", "1", "42")


@pytest.fixture(scope="module", params=cases())
def case(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture(scope="module")
def found(case: str) -> dict[str, dict[str, Any]]:
    return objects(case)


def test_there_are_at_least_twelve() -> None:
    assert len(cases()) >= 12
    engines = {yaml.safe_load((ROOT / name / "infsvc.yaml").read_text())["spec"]["engine"]["name"] for name in cases()}
    assert engines == {"vllm", "llama.cpp"}


def test_what_is_rendered_is_what_is_expected(case: str) -> None:
    assert golden(case) == expected_file(case).read_text(encoding="utf-8"), "look at it, then: make golden"


def test_the_revision_holds_the_template_that_runs(found: dict[str, dict[str, Any]]) -> None:
    template = found["Deployment"]["spec"]["template"]
    assert found["ControllerRevision"]["data"]["template"] == template
    assert found["ControllerRevision"]["data"]["key"] == template["metadata"]["labels"]["serving.stoker.dev/revision"]


def test_rendering_again_gives_the_same_bytes(case: str) -> None:
    assert len({render(case) for _ in range(5)}) == 1


def test_the_order_of_keys_changes_nothing(case: str, tmp_path: Path) -> None:
    """Everything but the lists of the user is rendered in an order of its own."""
    raw = yaml.safe_load((ROOT / case / "infsvc.yaml").read_text())
    turned = _turned(raw)
    assert json.dumps(turned) != json.dumps(raw)
    file = tmp_path / "infsvc.yaml"
    file.write_text(yaml.safe_dump(turned, sort_keys=False))
    assert render(case, file) == render(case)


def _turned(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _turned(value[key]) for key in reversed(list(value))}
    return [_turned(item) for item in value] if isinstance(value, list) else value


def test_every_process_renders_the_same_bytes() -> None:
    """The hash seed decides on the order of sets, and nothing may depend on that."""
    program = "from tests.golden.harness import cases, render\nprint('\\n'.join(map(render, cases())))"
    texts = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONPATH": "operator:.", "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            timeout=120,
        ).stdout
        for seed in SEEDS
    }
    assert len(texts) == 1


def test_N12_every_count_of_gpus_says_the_same(found: dict[str, dict[str, Any]]) -> None:
    layout = found["ControllerRevision"]["data"]["layout"]
    (engine,) = found["Deployment"]["spec"]["template"]["spec"]["containers"]
    asked = engine["resources"]["limits"].get("nvidia.com/gpu", "0")
    assert int(asked) == layout["gpus_per_pod"] == (layout["tensor"] * layout["pipeline"] if int(asked) else 0)
    if engine["command"] == ["vllm", "serve"]:
        words = engine["args"]
        ranks = [
            int(words[words.index(flag) + 1])
            for flag in ("--tensor-parallel-size", "--pipeline-parallel-size")
            if flag in words
        ]
        product = 1
        for rank in ranks:
            product *= rank
        assert product == max(int(asked), 1)


def test_N13_no_device_is_named(found: dict[str, dict[str, Any]]) -> None:
    assert "CUDA_VISIBLE_DEVICES" not in json.dumps(found)


def test_no_key_stands_in_argv(found: dict[str, dict[str, Any]]) -> None:
    (engine,) = found["Deployment"]["spec"]["template"]["spec"]["containers"]
    assert not [word for word in engine["args"] if "api-key" in word or "hf-token" in word]


def test_what_the_engine_waits_for_is_no_shorter_than_the_startup_budget(found: dict[str, dict[str, Any]]) -> None:
    (engine,) = found["Deployment"]["spec"]["template"]["spec"]["containers"]
    limit = [int(v["value"]) for v in engine["env"] if v["name"] == "VLLM_ENGINE_READY_TIMEOUT_S"]
    budget = found["ControllerRevision"]["data"]["layout"]["startup_budget_seconds"]
    assert all(seconds >= budget for seconds in limit)
    probe = engine["startupProbe"]
    assert probe["periodSeconds"] * probe["failureThreshold"] >= budget


def test_shared_memory_and_memory_volumes_fit_the_limit(found: dict[str, dict[str, Any]]) -> None:
    layout = found["ControllerRevision"]["data"]["layout"]
    assert layout["shm_bytes"] < layout["memory_request_bytes"]
