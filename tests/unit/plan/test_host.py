"""What the container takes of the node, and the time to start."""

import pytest

from stoker.plan.host import shm_bytes, startup_budget_seconds
from stoker.plan.units import quantity, shown
from tests.builders.layouts import GIB, planned
from tests.builders.specs import H100, a_spec
from tests.builders.traits import llama_cpp_traits, vllm_traits


@pytest.mark.parametrize(
    ("world", "on_gpu", "gib"),
    [(1, True, 2), (2, True, 8), (4, True, 12), (8, True, 16), (16, True, 16), (1, False, 1)],
)
def test_shared_memory_grows_with_the_processes(world: int, on_gpu: bool, gib: int) -> None:
    assert shm_bytes(vllm_traits(), world, on_gpu) == gib * GIB


def test_no_shared_memory_for_one_process() -> None:
    assert shm_bytes(llama_cpp_traits(), 4, True) == 0


def test_shared_memory_counts_against_the_container() -> None:
    one, eight = planned(a_spec().on(H100)), planned(a_spec().on(H100).tensor(8))
    assert one.memory_request_bytes == one.shm_bytes + 8 * GIB + 2 * GIB
    assert eight.memory_request_bytes == eight.shm_bytes + 8 * GIB + 16 * GIB


def test_models_that_see_need_room_for_decoded_images() -> None:
    seeing = planned(a_spec().model("hf://google/gemma-3-27b-it").on(H100))
    assert seeing.memory_request_bytes == planned(a_spec().on(H100)).memory_request_bytes + 8 * GIB


@pytest.mark.parametrize("memory", ["1", "1Mi", "1Gi"])
def test_a_container_that_no_engine_starts_in_is_refused_though_the_model_is_unknown(memory: str) -> None:
    layout = planned(a_spec().model("hf://acme/unknown").on_cpu(memory))
    assert [fault.path for fault in layout.faults] == ["spec.resources.memory"]
    assert "set it to at least" in layout.faults[0].remedy
    assert planned(a_spec().model("hf://acme/unknown").on_cpu("8Gi")).faults == ()


def test_fields_win() -> None:
    layout = planned(a_spec().on(H100).set("resources", {"cpu": "1500m", "memory": "64Gi"}))
    assert (layout.cpu_request_millicores, layout.memory_request_bytes) == (1500, 64 * GIB)


@pytest.mark.parametrize(("tensor", "millicores"), [(1, 3000), (4, 6000), (8, 10000)])
def test_two_cores_and_one_for_each_worker(tensor: int, millicores: int) -> None:
    assert planned(a_spec().on(H100).tensor(tensor)).cpu_request_millicores == millicores


def test_cores_of_a_cpu_engine() -> None:
    layout = planned(a_spec().model("hf://HuggingFaceTB/SmolLM2-135M").on_cpu("8Gi", cpu=None))
    assert layout.cpu_request_millicores == 4000


@pytest.mark.parametrize(
    ("gigabytes", "minutes"), [(0, 8), (16, 11), (141, 30), (689, 113)], ids=["empty", "8B", "70B", "671B"]
)
def test_the_time_to_start_grows_with_the_bytes_to_load(gigabytes: int, minutes: int) -> None:
    assert startup_budget_seconds(gigabytes * 10**9) == minutes * 60


def test_no_start_is_waited_for_longer_than_a_day() -> None:
    assert startup_budget_seconds(10**21) == 24 * 3600


def test_half_an_hour_for_a_model_that_is_not_known() -> None:
    assert startup_budget_seconds(None) == 1800


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1 KiB"),
        (1536 * 2**20, "1.5 GiB"),
        (GIB, "1 GiB"),
        (5 * 2**40, "5 TiB"),
        (-GIB, "-1 GiB"),
        (100 * GIB, "100 GiB"),
        (81559 * 2**20, "79.65 GiB"),
    ],
)
def test_bytes_for_people(count: int, text: str) -> None:
    assert shown(count) == text


@pytest.mark.parametrize(("count", "text"), [(GIB, "1Gi"), (GIB + 1, "1025Mi"), (1536 * 2**20, "1536Mi"), (1, "1Mi")])
def test_quantities_are_never_smaller(count: int, text: str) -> None:
    assert quantity(count) == text
