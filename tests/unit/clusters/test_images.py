"""An image is built anew exactly when something that goes into it has changed."""

import os
from pathlib import Path

import pytest

from clusters import images
from clusters.errors import ClusterError
from clusters.images import Recipe
from clusters.node import Node


@pytest.fixture
def recipe(tmp_path: Path) -> Recipe:
    """An image with a file, a folder and requirements."""
    (tmp_path / "Containerfile").write_text("ARG BASE\nFROM ${BASE}\n")
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "main.py").write_text("print('hello')\n")
    (tmp_path / "pyproject.toml").write_text("[project]\n")
    (tmp_path / "requirements.txt").write_text("a==1 --hash=sha256:0\n")
    sources = {"code": tmp_path / "code", "pyproject.toml": tmp_path / "pyproject.toml"}
    return Recipe("example.test/a:1", tmp_path / "Containerfile", sources, tmp_path / "requirements.txt")


@pytest.mark.parametrize(
    "changed", ["Containerfile", "code/main.py", "code/new.py", "pyproject.toml", "requirements.txt"]
)
def test_every_input_changes_the_key(recipe: Recipe, tmp_path: Path, changed: str) -> None:
    before = images.key(recipe)
    with (tmp_path / changed).open("a") as file:
        file.write("# changed\n")
    assert images.key(recipe) != before


def test_a_file_that_becomes_executable_changes_the_key(recipe: Recipe, tmp_path: Path) -> None:
    before = images.key(recipe)
    (tmp_path / "code" / "main.py").chmod(0o755)
    assert images.key(recipe) != before


def test_a_file_that_is_renamed_changes_the_key(recipe: Recipe, tmp_path: Path) -> None:
    before = images.key(recipe)
    (tmp_path / "code" / "main.py").rename(tmp_path / "code" / "start.py")
    assert images.key(recipe) != before


def test_what_python_leaves_behind_does_not(recipe: Recipe, tmp_path: Path) -> None:
    before = images.key(recipe)
    (tmp_path / "code" / "__pycache__").mkdir()
    (tmp_path / "code" / "__pycache__" / "main.pyc").write_text("compiled")
    assert images.key(recipe) == before


def test_a_source_that_is_missing_is_named(tmp_path: Path) -> None:
    (tmp_path / "Containerfile").write_text("FROM scratch\n")
    recipe = Recipe("example.test/a:1", tmp_path / "Containerfile", {"code": tmp_path / "absent"})
    with pytest.raises(ClusterError, match=r"absent is to go into an image, and is not there"):
        images.key(recipe)


def test_an_archive_that_is_there_is_not_built_again(
    recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STOKER_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path))
    archive = tmp_path / "cache" / "images" / f"example.test-a-{images.key(recipe)}.tar"
    archive.parent.mkdir(parents=True)
    archive.write_text("built before")
    assert images.build(recipe) == archive


def test_older_archives_go_but_one_that_was_built_just_now_stays(recipe: Recipe, tmp_path: Path) -> None:
    newest, fresh, old = (tmp_path / f"{recipe.slug}-{digit * 16}.tar" for digit in "abc")
    for archive in (newest, fresh, old):
        archive.write_text("an archive")
    os.utime(old, (0, 0))

    images._remove_older(tmp_path, recipe, newest)

    assert (newest.exists(), fresh.exists(), old.exists()) == (True, True, False)


def test_an_archive_that_is_gone_is_an_error_for_people(tmp_path: Path) -> None:
    node = Node("a-node", tmp_path, anchor=1)

    with pytest.raises(ClusterError, match=r"gone\.tar is not there; build the images again"):
        node.load_image(tmp_path / "gone.tar")
