"""Arguments that an engine does not take: what is said depends on who gave them, the user or Stoker for a field."""

import pytest

from stoker.status.case import Case, Diagnosis
from stoker.status.diagnosis import diagnose
from tests.builders import last_words as said
from tests.builders.failures import CPP, crashed
from tests.builders.layouts import a_layout
from tests.builders.specs import SpecBuilder, a_spec

HUB_FILE = CPP.model("hf://HuggingFaceTB/SmolLM2-135M-Instruct-GGUF/smollm2.gguf")
VLLM = a_spec()


def told(words: str, spec: SpecBuilder) -> Diagnosis:
    """What is said of an engine that ended with these words."""
    diagnosis = diagnose(Case(crashed(words, 2), spec.build(), a_layout()))
    assert diagnosis is not None
    assert diagnosis.stalled
    return diagnosis


def unrecognized(arguments: str) -> str:
    """The words of vLLM for arguments that it does not know."""
    return f"usage: vllm serve [model_tag] [options]\nvllm serve: error: unrecognized arguments: {arguments}\n"


def test_a_server_that_downloads_nothing_is_quoted_and_leads_to_the_source() -> None:
    diagnosis = told(said.LLAMA_NO_DOWNLOAD, HUB_FILE.set("engine.version", "b11549"))
    assert diagnosis == Diagnosis(
        "RefusedArgument",
        "the engine refuses the argument --hf-repo, which Stoker renders from spec.model.source; set that to "
        "pvc://CLAIM/PATH, or take another spec.engine.image; the engine said: llama-server: --hf-repo: refused: this "
        "build downloads nothing",
        stalled=True,
    )


@pytest.mark.parametrize("argument", ["--lora", "--mlock"])
def test_a_refused_argument_of_the_user_is_quoted(argument: str) -> None:
    diagnosis = told(said.LLAMA_FLAG.replace("--foo", argument), CPP.set("engine.args", [argument]))
    assert diagnosis == Diagnosis(
        "UnknownArgument",
        f"the engine refuses the argument {argument}; correct spec.engine.args, or take another spec.engine.image; the "
        f"engine said: llama-server: {argument}: refused: it is not an option of this llama-server; --help lists them",
        stalled=True,
    )


@pytest.mark.parametrize(
    ("words", "spec", "who"),
    [
        (
            "llama-server: --cache-type-k: refused: it is not x",
            CPP.kv("q8_0"),
            "from spec.quantization.kvCache; change",
        ),
        ("llama-server: --no-slots: refused: it is not x", CPP, "itself; take another spec.engine.image"),
        (unrecognized("--max-num-queued-reqs 5"), VLLM, "from spec.batching.maxQueued; change"),
        (unrecognized("--no-enable-prefix-caching"), VLLM, "from spec.context.prefixCaching; change"),
        (unrecognized("--shutdown-timeout=15"), VLLM, "itself; correct spec.engine.version or spec.engine.image"),
    ],
)
def test_an_argument_that_stoker_rendered_leads_to_its_field(words: str, spec: SpecBuilder, who: str) -> None:
    for args in ([], ["--seed", "1"]):
        message = told(words, spec.set("engine.args", args)).message
        assert f"which Stoker renders {who}" in message
        assert "spec.engine.args" not in message


@pytest.mark.parametrize("args", [["--max-tokens", "5"], ["--max-tokens=5"], ["--max_tokens", "5"]])
def test_an_argument_of_the_user_leads_to_the_arguments(args: list[str]) -> None:
    message = told(said.VLLM_FLAG, VLLM.set("engine.args", args)).message
    assert message == (
        "the engine at version 0.32.0 does not know the argument --max-tokens 5; correct spec.engine.args or "
        "spec.engine.version"
    )


def test_an_argument_of_nobody_leads_to_all_that_it_may_come_from() -> None:
    """The pod may be of a revision whose arguments the spec no longer has."""
    message = told(said.VLLM_FLAG, VLLM).message
    assert "correct spec.engine.args, spec.engine.version or spec.engine.image" in message


@pytest.mark.parametrize(
    ("words", "spec", "remedy"),
    [
        (said.VLLM_VALUE, VLLM.kv("fp9"), "correct spec.quantization.kvCache"),
        (said.VLLM_VALUE.replace("--kv-cache-dtype", "--tensor-parallel-size/-tp"), VLLM, "spec.parallelism.tensor"),
        (said.VLLM_VALUE.replace("--kv-cache-dtype", "--seed"), VLLM.set("engine.args", ["--see", "x"]), "engine.args"),
        (said.LLAMA_VALUE, CPP, "correct spec.context.maxLength"),
        (said.LLAMA_VALUE.replace("-c", "--seed"), CPP.set("engine.args", ["--seed", "x"]), "correct spec.engine.args"),
    ],
)
def test_a_refused_value_leads_to_where_it_stands(words: str, spec: SpecBuilder, remedy: str) -> None:
    diagnosis = told(words, spec)
    assert diagnosis.reason == "InvalidArgument"
    assert remedy in diagnosis.message
    assert ("spec.engine.args" in diagnosis.message) is ("args" in remedy)


def test_a_refusal_is_told_without_a_spec() -> None:
    diagnosis = diagnose(Case(crashed(said.LLAMA_NO_DOWNLOAD, 2)))
    assert diagnosis is not None
    assert "take another spec.engine.image" in diagnosis.message
