"""The engine's metrics page: exact names, sums over ranks, and unknown where nothing certain can be said."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.agent.config import EngineMetrics
from stoker.agent.metrics import Family, Histogram, Reading, engine_families, escape_label, expose, read_page
from tests.builders.agents import LLAMA_CPP, VLLM

VLLM_PAGE = """\
# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m"} 3.0
vllm:num_requests_running{engine="1",model_name="m"} 2.0
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{engine="0",model_name="m"} 0.0
vllm:num_requests_waiting{engine="1",model_name="m"} 0.0
# TYPE vllm:num_requests_waiting_by_reason gauge
vllm:num_requests_waiting_by_reason{engine="0",model_name="m",reason="capacity"} 4.0
vllm:num_requests_waiting_by_reason{engine="0",model_name="m",reason="deferred"} 9.0
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.25
vllm:kv_cache_usage_perc{engine="1",model_name="m"} 0.75
vllm:prompt_tokens_total{engine="0",model_name="m"} 24.0
vllm:prompt_tokens_created{engine="0",model_name="m"} 1.795969215764012e+09
vllm:prompt_tokens_by_source_total{engine="0",model_name="m",source="local_compute"} 99.0
vllm:generation_tokens_total{engine="0",model_name="m"} 43.0
vllm:iteration_tokens_total_bucket{engine="0",le="1.0",model_name="m"} 40.0
vllm:iteration_tokens_total_count{engine="0",model_name="m"} 43.0
http_requests_total{handler="/v1/chat/completions",method="POST",status="2xx"} 5.0
http_requests_total{handler="none",method="GET",status="4xx"} 2.0
vllm:time_to_first_token_seconds_bucket{engine="0",le="0.1",model_name="m"} 1.0
vllm:time_to_first_token_seconds_bucket{engine="0",le="+Inf",model_name="m"} 4.0
vllm:time_to_first_token_seconds_count{engine="0",model_name="m"} 4.0
vllm:time_to_first_token_seconds_sum{engine="0",model_name="m"} 1.5
vllm:time_to_first_token_seconds_bucket{engine="1",le="0.1",model_name="m"} 2.0
vllm:time_to_first_token_seconds_bucket{engine="1",le="+Inf",model_name="m"} 2.0
vllm:time_to_first_token_seconds_count{engine="1",model_name="m"} 2.0
vllm:time_to_first_token_seconds_sum{engine="1",model_name="m"} 0.25
process_start_time_seconds 1.79596907797e+09
"""


def test_a_page_of_vllm() -> None:
    read = read_page(VLLM_PAGE, VLLM)
    assert (read.running, read.kv_usage) == (5.0, 0.75)
    assert (read.prompt_tokens, read.generation_tokens, read.steps) == (24.0, 43.0, 43.0)
    assert read.accepted == (7.0,)
    assert read.process_start == pytest.approx(1795969077.97)
    assert read.ttft == Histogram(buckets=((0.1, 3.0), (math.inf, 6.0)), total=1.75)
    assert read.tpot is None


def test_waiting_is_summed_over_the_exact_name_only() -> None:
    """Kthena's preStop matched `num_requests_waiting_by_reason` too, and always waited for the whole grace period."""
    assert read_page(VLLM_PAGE, VLLM).waiting == 0.0


def test_a_page_of_llama_cpp() -> None:
    page = "llamacpp:requests_processing 4\nllamacpp:requests_deferred 116\nllamacpp:n_decode_total 59\n"
    read = read_page(page, LLAMA_CPP)
    assert (read.running, read.waiting, read.steps) == (4.0, 116.0, 59.0)
    assert (read.kv_usage, read.prompt_tokens, read.ttft, read.accepted) == (None, None, None, ())


def test_N9_missing_is_unknown_and_never_zero() -> None:
    assert read_page("", VLLM) == Reading(accepted=(None,))


@pytest.mark.parametrize(
    "line",
    [
        'vllm:num_requests_running{engine="1"} NaN',
        'vllm:num_requests_running{engine="1"} -1',
        'vllm:num_requests_running{engine="1"} +Inf',
        'vllm:num_requests_running{engine="1"}',
        'vllm:num_requests_running{engine="1" 3',
        "vllm:num_requests_running three",
        "vllm:num_requests_running 1_000",
        "vllm:num_requests_running 1 2 3",
    ],
)
def test_N9_one_line_that_cannot_be_read_makes_the_sum_unknown(line: str) -> None:
    page = f'vllm:num_requests_running{{engine="0"}} 2\n{line}\n'
    assert read_page(page, VLLM).running is None


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("a 3", 3.0),
        ("a\t3", 3.0),
        ("a{} 3", 3.0),
        ("a 3 1395066363000", 3.0),
        ("a 3\r", 3.0),
        ('a 3e2 # {trace_id="x"} 0.5', 300.0),
        ('a{model="br{ce} and \\"quote\\" and \\\\"} 4', 4.0),
        ('a{model="x y",} 4', 4.0),
    ],
)
def test_every_legal_form_of_a_sample_is_read(line: str, value: float) -> None:
    assert read_page(f"{line}\n", EngineMetrics(running="a")).running == value


@pytest.mark.parametrize(
    "page",
    [
        'h_bucket{le="1"} 2\nh_bucket{le="+Inf"} 1\nh_sum 1\n',
        'h_bucket{le="1"} 2\nh_sum 1\n',
        'h_bucket{le="one"} 1\nh_bucket{le="+Inf"} 1\nh_sum 1\n',
        'h_bucket{le="NaN"} 1\nh_bucket{le="+Inf"} 1\nh_sum 1\n',
        'h_bucket{le="+Inf"} 1\n',
        'h_bucket 1\nh_bucket{le="+Inf"} 1\nh_sum 1\n',
        "".join(f'h_bucket{{le="{bound}"}} 1\n' for bound in range(300)) + 'h_bucket{le="+Inf"} 1\nh_sum 1\n',
    ],
    ids=["falling", "no infinity", "bound", "nan bound", "no sum", "no bound", "too many"],
)
def test_a_malformed_histogram_is_left_out_whole(page: str) -> None:
    assert read_page(page, EngineMetrics(ttft="h")).ttft is None


@given(st.text(alphabet='a_total{}",=\\\n #0123456789.eE+-NaInf', max_size=400))
def test_no_page_raises(page: str) -> None:
    names = EngineMetrics(running="a", waiting="a_total", ttft="a", kv_usage="aa", requests_accepted=("I",))
    read = read_page(page, names)
    assert read.running is None or (read.running >= 0 and math.isfinite(read.running))


@given(st.lists(st.floats(min_value=0, allow_infinity=False, allow_nan=False), min_size=1, max_size=8))
def test_a_sum_is_finite_or_unknown(values: list[float]) -> None:
    page = "".join(f'a{{rank="{rank}"}} {value!r}\n' for rank, value in enumerate(values))
    running = read_page(page, EngineMetrics(running="a")).running
    assert running is None if math.isinf(sum(values)) else running == sum(values)


def test_a_line_of_many_quotes_is_read_in_linear_time() -> None:
    page = "a{" + 'x="y",' * 100_000 + '"' * 99_999
    assert read_page(page, EngineMetrics(running="a")).running is None


# ---- the way out ----------------------------------------------------------------------------------------------------


def test_the_same_names_for_every_engine() -> None:
    names = [family.name for family in engine_families(Reading())]
    assert names == [
        "stoker_engine_requests_running",
        "stoker_engine_requests_waiting",
        "stoker_engine_kv_usage_ratio",
        "stoker_engine_prompt_tokens_total",
        "stoker_engine_generation_tokens_total",
        "stoker_engine_steps_total",
        "stoker_engine_ttft_seconds",
        "stoker_engine_tpot_seconds",
    ]


def test_N9_unknown_figures_are_left_out() -> None:
    page = expose(engine_families(Reading(running=2.0)), "m")
    assert page.splitlines()[-1] == 'stoker_engine_requests_running{model="m"} 2'
    assert "waiting" not in page


def test_N20_the_model_label_is_escaped() -> None:
    assert escape_label('a"b\\c\nd') == 'a\\"b\\\\c\\nd'
    page = expose([Family("f", "gauge", "help", 1.0)], 'm"} 9\nevil 1')
    assert page.splitlines()[-1] == 'f{model="m\\"} 9\\nevil 1"} 1'


def test_a_histogram_goes_out_as_it_came_in() -> None:
    names = EngineMetrics(ttft="vllm:time_to_first_token_seconds")
    page = expose(engine_families(read_page(VLLM_PAGE, names)), "m")
    again = read_page(page, EngineMetrics(ttft="stoker_engine_ttft_seconds"))
    assert again.ttft == read_page(VLLM_PAGE, names).ttft
    assert 'stoker_engine_ttft_seconds_bucket{model="m",le="+Inf"} 6' in page


@given(st.text(max_size=40), st.floats(min_value=0, allow_nan=False, allow_infinity=False))
def test_what_is_exposed_can_be_read_back(model: str, value: float) -> None:
    page = expose([Family("f", "gauge", "help", value)], model)
    assert read_page(page, EngineMetrics(running="f")).running == value
