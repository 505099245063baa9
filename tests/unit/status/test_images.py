"""Images that cannot be pulled: a name that is none is not tried for ever, and the way out is named."""

import pytest

from stoker.status.case import Case, Diagnosis
from stoker.status.diagnosis import diagnose
from tests.builders import last_words as said
from tests.builders.failures import waiting


@pytest.mark.parametrize("reason", ["InvalidImageName", "ErrImagePull", "ImagePullBackOff", "ImageInspectError"])
@pytest.mark.parametrize("words", [said.BAD_IMAGE, said.BAD_REFERENCE], ids=["kubelet", "runtime"])
def test_a_name_that_is_no_image_reference_is_quoted_and_to_be_corrected(reason: str, words: str) -> None:
    assert diagnose(Case(waiting(reason, words))) == Diagnosis(
        "ImagePull",
        f"the engine's image UPPER:1 is no image reference; correct spec.engine.image: {words}",
        stalled=True,
    )


def test_an_invalid_name_of_which_nothing_is_said_is_to_be_corrected() -> None:
    diagnosis = diagnose(Case(waiting("InvalidImageName", "")))
    assert diagnosis is not None
    assert diagnosis.message == "the engine's image is no image reference; correct spec.engine.image"
    assert diagnosis.stalled


def test_the_way_out_of_an_invalid_name_outlives_however_much_is_said() -> None:
    diagnosis = diagnose(Case(waiting("InvalidImageName", f"{said.BAD_IMAGE}{' and more' * 400}")))
    assert diagnosis is not None
    assert "correct spec.engine.image" in diagnosis.message
    assert len(diagnosis.message) <= 1024
