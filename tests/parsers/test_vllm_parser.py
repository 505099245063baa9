"""vLLM's own parser judges what is rendered, and what the normaliser makes of a spelling.

`make parsers-newest` sets STOKER_VLLM_ENVS to the environment of the newest vLLM, `make parsers` to older ones as well.
"""

import json
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from stoker.engines.versions import Version, parse_version
from stoker.engines.vllm_arguments import read_arguments
from stoker.engines.vllm_table import vllm_options
from tests.parsers.cases import golden_vllm, rendered_vllm, spelled_vllm

JUDGE = Path(__file__).parent / "vllm_judge.py"
ENVIRONMENTS = os.environ.get("STOKER_VLLM_ENVS", "").split()
TIME_LIMIT_SECONDS = 900
MODEL_POSITION = "model_tag"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the parser said of one list."""

    accepted: bool
    words: str
    changed: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Judgement:
    """What one version of vLLM said of all lists."""

    version: Version
    options: Mapping[str, str]
    rendered: Mapping[str, Verdict]
    golden: Mapping[str, Verdict]
    spelled: Mapping[str, Verdict]


@pytest.fixture(scope="session", params=ENVIRONMENTS or ["none"], ids=lambda path: Path(path).name[:9])
def judgement(request: pytest.FixtureRequest) -> Judgement:
    """One run of one vLLM for all tests: the import alone takes it half a minute."""
    if request.param == "none":
        pytest.fail("STOKER_VLLM_ENVS names no environment with vLLM; run make parsers-newest")
    version = _version(Path(request.param))
    lists = {
        "rendered": rendered_vllm(str(version)),
        "golden": golden_vllm(version),
        "spelled": {name: ("a/model", *items) for name, items in spelled_vllm().items()},
    }
    answer = _run(Path(request.param), [list(args) for part in lists.values() for args in part.values()])
    assert parse_version(answer["version"]) == version
    verdicts = iter(Verdict(**verdict) for verdict in answer["verdicts"])
    told = {part: {name: next(verdicts) for name in cases} for part, cases in lists.items()}
    return Judgement(version, answer["options"], **told)


def _version(environment: Path) -> Version:
    (metadata,) = environment.glob("lib/python3.*/site-packages/vllm-*.dist-info")
    version = parse_version(metadata.name.removeprefix("vllm-").removesuffix(".dist-info"))
    assert version is not None
    return version


def _run(environment: Path, lists: list[list[str]]) -> dict[str, Any]:
    variables = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    result = subprocess.run(
        [str(environment / "bin" / "python"), str(JUDGE)],
        input=json.dumps({"lists": lists}).encode(),
        capture_output=True,
        env=variables,
        timeout=TIME_LIMIT_SECONDS,
        check=False,
    )
    assert result.returncode == 0, result.stderr.decode()[-3000:]
    answer: dict[str, Any] = json.loads(result.stdout)
    return answer


def test_every_rendered_list_passes(judgement: Judgement) -> None:
    assert len(judgement.rendered) > 40
    refused = {name: verdict.words for name, verdict in judgement.rendered.items() if not verdict.accepted}
    assert refused == {}


def test_every_golden_list_passes(judgement: Judgement) -> None:
    assert len(judgement.golden) > 8
    refused = {name: verdict.words for name, verdict in judgement.golden.items() if not verdict.accepted}
    assert refused == {}


def test_values_arrive_as_they_were_meant_N11(judgement: Judgement) -> None:
    changed = judgement.rendered["layout 1"].changed
    assert {name: changed[name] for name in ("tensor_parallel_size", "pipeline_parallel_size", "max_num_seqs")} == {
        "tensor_parallel_size": "4",
        "pipeline_parallel_size": "2",
        "max_num_seqs": "1",
    }
    assert judgement.rendered["gpu pvc://claim"].changed[MODEL_POSITION] == "'/models'"
    overrides = next(v for n, v in judgement.rendered.items() if n.startswith("gpu engine.args=['--hf-over"))
    assert overrides.changed["hf_overrides"] == repr({"a": "$(X) \"quoted\" 'x'", "b": {"c": [1, 2]}})


def test_the_table_has_the_options_of_the_parser(judgement: Judgement) -> None:
    known = {
        spelling
        for option in vllm_options().options.values()
        for spelling in option.spellings
        if option.accepts(spelling, judgement.version)
    }
    assert set(judgement.options) - known == set()
    # A flag that the parser can only switch on has no --no- form, whatever the table has of later versions.
    assert {spelling for spelling in known - set(judgement.options) if not spelling.startswith("--no-")} == set()


def test_the_table_has_the_number_of_values(judgement: Judgement) -> None:
    differing = {
        spelling: (takes, options[0].takes)
        for spelling, takes in judgement.options.items()
        if (options := vllm_options().by_spelling.get(spelling)) and len(options) == 1 and options[0].takes != takes
    }
    assert differing == {}


def test_a_spelling_means_to_the_normaliser_what_it_means_to_the_parser(judgement: Judgement) -> None:
    missed = {}
    for name, items in spelled_vllm().items():
        read = read_arguments(items, vllm_options(), judgement.version)
        meant = {_setting(option) for argument in read for option in argument.options}
        strange = set(judgement.spelled[name].changed) - meant - {MODEL_POSITION} - _COMPANIONS
        if strange:
            missed[name] = sorted(strange)
    assert missed == {}


def test_the_normaliser_takes_what_the_parser_takes(judgement: Judgement) -> None:
    wrong = {}
    for name, items in spelled_vllm().items():
        read = read_arguments(items, vllm_options(), judgement.version)
        takes = all(argument.accepted is not False and argument.problem is None for argument in read)
        verdict = judgement.spelled[name]
        unknown = "unrecognized" in verdict.words or "ambiguous" in verdict.words
        if name not in _PARTING and ((takes and unknown) or (not takes and verdict.accepted)):
            wrong[name] = verdict.words or "accepted"
    assert wrong == {}


_PARTING = {
    "--",  # accepted where nothing follows; every option after it would be taken for a model
    "-q 1",  # one item: accepted as the value " 1"
    "--model 1",  # two items: takes the place of the model before it, which is then one too many
    "-Odecode",  # any word passes the parser; the levels are checked when the engine starts
    "-O.mode=0",  # a level of that name since some version between 0.12 and 0.20
}
"""Lists of which the normaliser deliberately thinks otherwise than the parser."""

_COMPANIONS = {"model"}
"""Settings that vLLM sets itself beside the one that was asked for."""


def _setting(option: str) -> str:
    return option.removeprefix("--").replace("-", "_")
