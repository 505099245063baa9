"""GPUs and quantizations."""

from decimal import Decimal

import pytest

from stoker.facts.gpus import GPUS, known_gpu
from stoker.facts.model import Checkpoint
from stoker.facts.quantization import GGUF_BITS, METHODS, Scope, gguf_type, method_of


@pytest.mark.parametrize(
    ("product", "memory_mib", "capability"),
    [
        ("NVIDIA-H100-80GB-HBM3", 81559, (9, 0)),
        ("NVIDIA-A100-SXM4-80GB", 81920, (8, 0)),
        ("NVIDIA-H200", 143771, (9, 0)),
        ("NVIDIA-B200", 183359, (10, 0)),
        ("NVIDIA-L4", 23034, (8, 9)),
        ("Tesla-T4", 15360, (7, 5)),
        ("Tesla-T4-SHARED", 15360, (7, 5)),
    ],
)
def test_known_gpus(product: str, memory_mib: int, capability: tuple[int, int]) -> None:
    gpu = known_gpu(product)
    assert gpu is not None
    assert (gpu.memory_mib, gpu.capability) == (memory_mib, capability)


def test_a_gpu_that_is_not_known_is_not_guessed() -> None:
    assert known_gpu("NVIDIA-H100-80GB-HBM4") is None
    assert known_gpu("NVIDIA-A100-SXM4-40GB-MIG-1g.5gb") is None


def test_memory_is_what_drivers_report_not_what_the_name_says() -> None:
    assert all(1000 < gpu.memory_mib < 300_000 for gpu in GPUS.values())
    assert GPUS["NVIDIA-H100-80GB-HBM3"].memory_mib * 2**20 == pytest.approx(85.5e9, rel=0.001)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("SmolLM2-135M-Instruct.Q4_1.gguf", "Q4_1"),
        ("folder/llama-3.1-8b-instruct-q4_k_m.gguf", "Q4_K_M"),
        ("model-Q8_0-00001-of-00002.gguf", "Q8_0"),
        ("model-f16.gguf", "F16"),
        ("model.gguf", None),
        ("F16-lessons.bin", "F16"),
    ],
)
def test_the_type_in_the_name_of_a_gguf_file(name: str, expected: str | None) -> None:
    assert gguf_type(name) == expected


def test_bits_that_a_checkpoint_states_beat_the_table() -> None:
    stated = method_of(Checkpoint("awq", Decimal("4.5")))
    assert stated is not None
    assert (stated.family, stated.bits) == ("awq", Decimal("4.5"))
    unknown = method_of(Checkpoint("compressed-tensors", Decimal(8)))
    assert unknown is not None
    assert (unknown.family, unknown.scope) == ("compressed-tensors", Scope.LINEAR)
    assert method_of(Checkpoint("mystery")) is None


def test_native_computation_needs_no_older_gpu_than_running_at_all() -> None:
    assert all(method.native >= method.capability for method in METHODS.values() if method.native != (7, 0))


def test_bits_are_between_two_and_sixteen() -> None:
    assert all(2 <= method.bits <= 16 for method in METHODS.values())
    assert all(2 <= bits <= 32 for bits in GGUF_BITS.values())
