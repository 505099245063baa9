"""What `make venv` does on a machine that has Python without the package that environments are made with."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PYTHON = """#!/bin/sh
case "$1" in
  */clusters/progress.py) echo "$2" >> "{folder}/steps.log"; shift 3; exec "$@" ;;
  -c) test -e "{folder}/has-ensurepip" ;;
  -m) mkdir -p "$3/bin" && ln -s /bin/true "$3/bin/python" ;;
esac
"""
APT = """#!/bin/sh
echo "$@" >> "{folder}/apt.log"
"""


def write_program(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text.format(folder=path.parents[1]))
    path.chmod(0o755)


@pytest.mark.parametrize("has_it", [True, False])
def test_the_debian_package_of_environments_is_installed_where_it_is_missing(tmp_path: Path, has_it: bool) -> None:
    shutil.copy(ROOT / "Makefile", tmp_path)
    (tmp_path / "requirements").mkdir()
    for requirements in (ROOT / "requirements").glob("*.txt"):
        shutil.copy(requirements, tmp_path / "requirements")
    write_program(tmp_path / "bin" / "python3", PYTHON)
    write_program(tmp_path / "bin" / "apt-get", APT)
    if has_it:
        (tmp_path / "has-ensurepip").touch()
    environment = {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", "STOKER_CACHE": str(tmp_path / "cache")}
    subprocess.run(["make", "venv"], cwd=tmp_path, env=environment, check=True, timeout=60, capture_output=True)
    asked = (tmp_path / "apt.log").read_text() if (tmp_path / "apt.log").exists() else ""
    assert ("install --yes --no-install-recommends python3-venv" in asked) is not has_it
    assert (tmp_path / ".venv" / "bin" / "python").exists()
    steps = (tmp_path / "steps.log").read_text()
    assert "Python environment: installing pinned requirements" in steps
    assert ("Python environment: installing the Debian package python3-venv" in steps) is not has_it
