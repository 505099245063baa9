"""`python -m tests.node.dequantize GGUF FOLDER`, by the environment of vLLM: the demo's model as vLLM reads it."""

import importlib
import sys
from pathlib import Path


def main() -> int:
    """Write config, tokenizer and bfloat16 weights of a quantized file into a folder."""
    source, target = Path(sys.argv[1]), sys.argv[2]
    transformers, torch = importlib.import_module("transformers"), importlib.import_module("torch")
    words = {"gguf_file": source.name}
    transformers.AutoTokenizer.from_pretrained(str(source.parent), **words).save_pretrained(target)
    plan = transformers.GgufConfig(dequantize=True)
    model = transformers.AutoModelForCausalLM.from_pretrained(
        str(source.parent), **words, dtype=torch.bfloat16, quantization_config=plan
    )
    model.save_pretrained(target)
    return 0


if __name__ == "__main__":
    sys.exit(main())
