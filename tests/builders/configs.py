"""Descriptions of models as their makers write them: `a_config(num_key_value_heads=2)`."""

from typing import Any


def a_config(**changes: Any) -> dict[str, Any]:
    """A small llama (2 layers, 4 heads, 2 key-value heads of 32); a change to None removes the key."""
    config: dict[str, Any] = {
        "model_type": "llama",
        "num_hidden_layers": 2,
        "hidden_size": 128,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "intermediate_size": 256,
        "vocab_size": 1000,
        "max_position_embeddings": 4096,
        "torch_dtype": "bfloat16",
    }
    return {key: value for key, value in (config | changes).items() if value is not None}
