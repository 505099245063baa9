"""``spec.model``: what is served, from where, under which names."""

from typing import Annotated, ClassVar

from pydantic import Field

from stoker.api.base import ApiModel
from stoker.api.cel import Rule, exactly_one_of
from stoker.api.references import Effect, Reference
from stoker.api.types import (
    Amount,
    Heads,
    LayerCount,
    Layers,
    ModelRevision,
    ModelSource,
    ObjectName,
    ServedName,
    Tokens,
    Width,
)

CREDENTIALS_KEY = "HF_TOKEN"
"""The key of ``credentialsSecret`` that holds the token of the Hugging Face Hub."""


class ModelNumbers(ApiModel):
    """The numbers of a model's architecture, as its config.json has them."""

    parameter_count: Amount | None = None
    """Number of parameters of the whole model; the size of the weights follows from it and from the quantization."""
    weight_bytes: Amount | None = None
    """Size of the weights as they are loaded, in bytes, where it is known exactly; in place of parameterCount."""
    layers: Layers
    """Number of hidden layers (num_hidden_layers)."""
    attention_heads: Heads
    """Number of attention heads (num_attention_heads). The tensor size must divide it."""
    kv_heads: Heads | None = None
    """Number of key-value heads (num_key_value_heads). Absent: as many as attention heads."""
    head_dim: Width | None = None
    """Size of one head (head_dim). Absent: hiddenSize divided by attentionHeads."""
    hidden_size: Width
    """Width of the hidden state (hidden_size)."""
    vocabulary_size: Amount | None = None
    """Number of tokens of the vocabulary (vocab_size)."""
    kv_lora_rank: Width | None = None
    """Rank of the compressed key-value state of multi-head latent attention (kv_lora_rank)."""
    rope_head_dim: Width | None = None
    """Size of the positional part of multi-head latent attention (qk_rope_head_dim); together with kvLoraRank."""
    sliding_window: Tokens | None = None
    """Window of the sliding-window layers, in tokens (sliding_window); together with slidingWindowLayers."""
    sliding_window_layers: LayerCount | None = None
    """How many of the layers see the sliding window only."""
    max_context_length: Tokens | None = None
    """Longest sequence that the model was made for, in tokens (max_position_embeddings)."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            field="parameterCount",
            problem="the size of the weights needs exactly one of parameterCount and weightBytes",
            remedy="set parameterCount, or weightBytes where the size is known exactly",
            expression=exactly_one_of("parameterCount", "weightBytes"),
            holds=lambda facts: (facts.parameter_count is None) != (facts.weight_bytes is None),
        ),
        Rule(
            field="ropeHeadDim",
            problem="kvLoraRank and ropeHeadDim describe latent attention together",
            remedy="set both, or neither",
            expression="has(self.kvLoraRank) == has(self.ropeHeadDim)",
            holds=lambda facts: (facts.kv_lora_rank is None) == (facts.rope_head_dim is None),
        ),
        Rule(
            field="kvHeads",
            problem="latent attention (kvLoraRank) has no key-value heads of its own",
            remedy="remove kvHeads and headDim, or kvLoraRank and ropeHeadDim",
            expression="!has(self.kvLoraRank) || (!has(self.kvHeads) && !has(self.headDim))",
            holds=lambda facts: facts.kv_lora_rank is None or (facts.kv_heads is None and facts.head_dim is None),
        ),
        Rule(
            field="kvHeads",
            problem="kvHeads is larger than attentionHeads",
            remedy="set kvHeads to num_key_value_heads of the model's config.json",
            expression="!has(self.kvHeads) || self.kvHeads <= self.attentionHeads",
            holds=lambda facts: facts.kv_heads is None or facts.kv_heads <= facts.attention_heads,
        ),
        Rule(
            field="slidingWindowLayers",
            problem="slidingWindow and slidingWindowLayers describe the window together",
            remedy="set both, or neither",
            expression="has(self.slidingWindow) == has(self.slidingWindowLayers)",
            holds=lambda facts: (facts.sliding_window is None) == (facts.sliding_window_layers is None),
        ),
        Rule(
            field="slidingWindowLayers",
            problem="slidingWindowLayers is larger than layers",
            remedy="count only the layers that see the window alone",
            expression="!has(self.slidingWindowLayers) || self.slidingWindowLayers <= self.layers",
            holds=lambda facts: facts.sliding_window_layers is None or facts.sliding_window_layers <= facts.layers,
        ),
    )


class ModelFacts(ApiModel):
    """Where the numbers of the model's architecture come from; exactly one of the fields."""

    config_map_name: Annotated[ObjectName | None, Reference("ConfigMap", Effect.OUTDATED)] = None
    """Name of a ConfigMap in the same namespace that holds the model's config.json under the key config.json, and
    optionally its model.safetensors.index.json under that key."""
    inline: ModelNumbers | None = None
    """The numbers themselves."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            field="",
            problem="exactly one of configMapName and inline must be set",
            remedy="name a ConfigMap that holds config.json, or write the numbers under inline",
            expression=exactly_one_of("configMapName", "inline"),
            holds=lambda facts: (facts.config_map_name is None) != (facts.inline is None),
        ),
    )


class Model(ApiModel):
    """The model that is served."""

    source: ModelSource
    """Where the weights are: hf://owner/name on the Hugging Face Hub (downloaded by the engine), or
    hf://owner/name/file.gguf for one file of it; pvc://claim/path for a folder or file on a PersistentVolumeClaim of
    the same namespace."""
    revision: ModelRevision | None = None
    """Commit, tag or branch of the model's repository on the Hub. A commit pins the weights. Only with hf://
    and vLLM: llama.cpp downloads the newest."""
    names: Annotated[tuple[ServedName, ...], Field(min_length=1, max_length=8)] | None = None
    """Names under which the API serves the model; the first is the label of the metrics. llama.cpp takes one.
    Absent: the name of the InferenceService."""
    credentials_secret: Annotated[ObjectName | None, Reference("Secret", Effect.NEXT_START)] = None
    """Name of a Secret in the same namespace whose key HF_TOKEN holds a token of the Hugging Face Hub. Only with
    hf://."""
    facts: ModelFacts | None = None
    """The numbers of the model's architecture, for models that Stoker does not know: the layout over GPUs is computed
    from them. Absent: the table of known models, and where that has none, the layout is unknown."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            field="revision",
            problem="revision is of a repository on the Hub, and the source is a volume",
            remedy="remove revision, or use a source that begins with hf://",
            expression="!has(self.revision) || !self.source.startsWith('pvc://')",
            holds=lambda model: model.revision is None or not model.source.startswith("pvc://"),
        ),
        Rule(
            field="credentialsSecret",
            problem="credentialsSecret is for the Hub, and the source is a volume",
            remedy="remove credentialsSecret, or use a source that begins with hf://",
            expression="!has(self.credentialsSecret) || !self.source.startsWith('pvc://')",
            holds=lambda model: model.credentials_secret is None or not model.source.startswith("pvc://"),
        ),
        Rule(
            field="source",
            problem="one file of a repository can be served only where it is a .gguf file",
            remedy="remove the file from the source, or name a .gguf file",
            expression="!self.source.matches('^hf://[^/]+/[^/]+/') || self.source.endsWith('.gguf')",
            holds=lambda model: (
                not model.source.startswith("hf://") or model.source.count("/") < 4 or model.source.endswith(".gguf")
            ),
        ),
        Rule(
            field="names",
            problem="a name is listed twice",
            remedy="list each served name once",
            expression="!has(self.names) || self.names.all(x, self.names.exists_one(y, y == x))",
            holds=lambda model: model.names is None or len(set(model.names)) == len(model.names),
        ),
    )
