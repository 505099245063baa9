"""Files for the commands, and what they say of bad ones."""

import re
from pathlib import Path

import yaml

from tests.builders.specs import SpecBuilder

LINE = re.compile(r"^(?P<file>[^:]+): (?P<path>[^:]+): (?P<problem>.+); (?P<remedy>.+)$")


def write(folder: Path, spec: SpecBuilder | str, name: str = "infsvc.yaml") -> str:
    """Write a manifest, or any text; return the name of the file."""
    file = folder / name
    file.write_text(spec if isinstance(spec, str) else yaml.safe_dump(spec.manifest()))
    return str(file)


def fault_lines(result: tuple[int, str, str]) -> list[re.Match[str]]:
    """The lines of standard error, each in the promised form; nothing else was printed."""
    code, out, err = result
    assert code == 1
    assert out == ""
    assert "Traceback" not in err
    found = [LINE.match(line) for line in err.splitlines()]
    assert found
    assert all(found), err
    return [match for match in found if match]
