"""Labels of pods: whatever a user writes, ours stay ours."""

from stoker.render.labels import pod_labels, selector_labels


def test_N14_a_label_of_a_user_never_takes_the_place_of_ours() -> None:
    """The spec refuses such labels; a pod that left its selector for one that slips through would serve nobody."""
    ours = pod_labels("chat", "vllm", "r1", None)
    theirs = dict.fromkeys(ours, "mine") | {"team": "a"}
    assert pod_labels("chat", "vllm", "r1", theirs) == ours | {"team": "a"}
    assert selector_labels("chat").items() <= ours.items()
