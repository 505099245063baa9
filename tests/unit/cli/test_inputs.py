"""The files beside the manifests, a model's config.json and nodes: what bad ones get."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.builders.amounts import BAD_AMOUNTS, Amount, node_with
from tests.builders.specs import a_spec
from tests.unit.cli.support import fault_lines, write


@pytest.mark.parametrize("text", ["", "[]", "{", '{"a": NaN}', "[" * 10_000, "null"])
def test_a_bad_model_config_gets_a_line(command: Any, tmp_path: Path, text: str) -> None:
    config = write(tmp_path, text, "config.json")
    (line,) = fault_lines(command("plan", "-f", write(tmp_path, a_spec()), "--model-config", config))
    assert (line["file"], line["path"]) == (config, "document")


CONFIG = {
    "num_attention_heads": 4,
    "hidden_size": 128,
    "num_hidden_layers": 2,
    "vocab_size": 1000,
    "intermediate_size": 512,
}
BAD_CONFIG: dict[str, tuple[dict[str, object], str]] = {
    "missing": ({"hidden_size": None}, "hidden_size: is missing; add it, as the model's repository has it"),
    "text": ({"hidden_size": "128"}, "hidden_size: is a string, not an integer; write an integer from 1 to 1048576"),
    "far": (
        {"hidden_size": 10**30},
        "hidden_size: is a number of more than 20 digits, outside 1 to 1048576; write an integer from 1 to 1048576",
    ),
    "heads": (
        {"num_kv_heads": 3},
        "num_kv_heads: is wrong: 3 key-value heads do not divide 4 attention heads; write a divisor of 4",
    ),
    "method": (
        {"quantization_config": {}},
        "quantization_config.quant_method: is missing; add it, as the model's repository has it",
    ),
    "another kind": (
        {"cross_attention_layers": [1]},
        "cross_attention_layers: describes cross attention; leave out --model-config and describe the model in spec",
    ),
    "encoder and decoder": (
        {"is_encoder_decoder": True},
        "is_encoder_decoder: is true, and the memory of an encoder-decoder model is not known here; leave out --model-",
    ),
    "another kind of layer": (
        {"layer_types": ["full_attention", "dreaming"]},
        "layer_types: names layers of the kind 'dreaming', which are not known here; leave out --model-config",
    ),
}


@pytest.mark.parametrize("name", BAD_CONFIG)
def test_a_bad_field_of_a_model_config_is_told_at_its_place(command: Any, tmp_path: Path, name: str) -> None:
    changes, said = BAD_CONFIG[name]
    config = write(tmp_path, json.dumps({**CONFIG, **changes}), "config.json")
    (line,) = fault_lines(command("plan", "-f", write(tmp_path, a_spec()), "--model-config", config))
    assert line.string.startswith(f"{config}: {said}")


def test_every_missing_field_of_a_model_config_gets_a_line(command: Any, tmp_path: Path) -> None:
    config = write(tmp_path, "{}", "config.json")
    lines = fault_lines(command("plan", "-f", write(tmp_path, a_spec()), "--model-config", config))
    assert [line["path"] for line in lines] == [
        "num_attention_heads",
        "hidden_size",
        "num_hidden_layers",
        "vocab_size",
        "intermediate_size",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "kind: Pod",
        "x",
        "kind: List\nitems: 5",
        "kind: List\nitems: [5]",
        "kind: [List]",
        "kind: Node",
        "kind: Node\nmetadata: {name: 5}",
        "kind: Node\nmetadata: {name: a}\nstatus: {allocatable: [1]}",
        "kind: Node\nmetadata: {name: a, labels: x}",
        "kind: Node\nmetadata: {name: a}\nspec: {taints: {}}",
        "kind: Node\nmetadata: {name: a}\nspec: {taints: [5]}",
        "kind: Node\nmetadata: {name: a, labels: {x: 5}}",
        "kind: Node\nmetadata: {name: a}\nstatus: {conditions: [5]}",
        "kind: Node\nmetadata: {name: a}\nstatus: {conditions: [{type: Ready, status: true}]}",
        "kind: Node\nmetadata: {name: a}\nstatus: {allocatable: {nvidia.com/gpu: x}}",
        "kind: Node\nmetadata: {name: a}\nstatus: {allocatable: {nvidia.com/gpu: -1}}",
        "kind: Node\nmetadata: {name: a}\nstatus: {allocatable: {nvidia.com/gpu: true}}",
        "kind: Node\nmetadata: {name: a}\nspec: {taints: [{effect: NoSchedule}]}",
        "kind: Node\nmetadata: {name: a}\nspec: {unschedulable: 'yes'}",
        "kind: Node\nmetadata: {name: ''}",
        "kind: Node\nmetadata: {name: a}\n---\nkind: Node\nmetadata: {name: a}",
        "kind: List\nitems: {}",
    ],
)
def test_a_bad_file_of_nodes_gets_a_line(command: Any, tmp_path: Path, text: str) -> None:
    nodes = write(tmp_path, text, "nodes.yaml")
    (line,) = fault_lines(command("plan", "-f", write(tmp_path, a_spec()), "--nodes", nodes))
    assert line["file"] == nodes


@pytest.mark.parametrize("amount", BAD_AMOUNTS, ids=": ".join)
def test_an_amount_that_is_none_is_told_at_its_resource(command: Any, tmp_path: Path, amount: Amount) -> None:
    nodes = write(tmp_path, node_with(*amount), "nodes.yaml")
    (line,) = fault_lines(command("plan", "-f", write(tmp_path, a_spec()), "--nodes", nodes))
    assert line["path"] == f"status.allocatable.{amount[0]}"
    assert f"{line['problem']}; {line['remedy']}".endswith(BAD_AMOUNTS[amount])


def test_every_amount_that_is_none_gets_a_line(command: Any, tmp_path: Path) -> None:
    text = "kind: List\nitems:\n- kind: Node\n  metadata: {name: a}\n  status: {allocatable: {cpu: x, memory: 1K}}\n"
    nodes = write(tmp_path, text, "nodes.yaml")
    lines = fault_lines(command("plan", "-f", write(tmp_path, a_spec()), "--nodes", nodes))
    assert [line["path"] for line in lines] == [f"items[0].status.allocatable.{name}" for name in ("cpu", "memory")]
