"""`make demo`, as a newcomer meets it: an answer, a table, what to try next; and again when it was removed."""

import re

from clusters.demo import PROMPT
from tests.node.support import Stage


def test_it_prints_an_answer_a_table_and_what_to_try_next(demo: str, stage: Stage) -> None:
    answer = re.search(rf"Q: {re.escape(PROMPT)}\nA: (.+)", demo)
    assert answer is not None and "Paris" in answer[1], demo
    assert re.search(r"^smollm2 +True ", demo, re.MULTILINE), demo
    assert f"export KUBECONFIG={stage.cluster.kubeconfig}" in demo
    assert "kubectl scale infsvc smollm2 --replicas=2" in demo


def test_it_can_be_run_again_where_its_model_was_removed(stage: Stage) -> None:
    """The volume of the claim that was deleted must not keep the new one waiting."""
    assert "\nA: " in stage.demo()
    stage.end_demo()
