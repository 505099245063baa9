"""What today's renderer would do otherwise than the one that made a revision.

Nothing rolls because of it; the status shows it, so that a person can decide to ask for fresh pods. Values are not
shown (a literal in an environment may be a secret), except images and the resources of containers.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from stoker.render.labels import REVISION

MAX_LINES = 16
"""Most differences that are told; the last line counts the others."""

_NAMED_LISTS = ("containers", "initContainers", "volumes", "env", "volumeMounts", "ports")
_SHOWN = ("image", "terminationGracePeriodSeconds")


def outdated(stored: Mapping[str, Any], today: Mapping[str, Any]) -> tuple[str, ...]:
    """Return one line per difference between the stored template and the one that today's renderer makes.

    ``containers[engine].args: --max-num-seqs added``; the revision's own label is left aside.
    """
    lines = [line for line in _differences("", _comparable(stored), _comparable(today)) if line]
    if len(lines) <= MAX_LINES:
        return tuple(lines)
    return (*lines[: MAX_LINES - 1], f"and {len(lines) - MAX_LINES + 1} more")


def _comparable(template: Mapping[str, Any]) -> dict[str, Any]:
    metadata = template.get("metadata", {})
    labels = {key: value for key, value in metadata.get("labels", {}).items() if key != REVISION}
    return {**template.get("spec", {}), "metadata": {**metadata, "labels": labels}}


def _differences(path: str, old: Any, new: Any) -> Iterator[str]:  # noqa: ANN401 - any JSON
    if old == new:
        return
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        yield from _in_mapping(path, old, new)
    elif isinstance(old, list) and isinstance(new, list):
        yield from _in_list(path, old, new)
    else:
        yield f"{path}: {_change(path, old, new)}"


def _in_mapping(path: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    for key in sorted(old.keys() | new.keys()):
        below = f"{path}.{key}" if path else key
        if key not in new:
            yield f"{below}: removed"
        elif key not in old:
            yield f"{below}: added"
        else:
            yield from _differences(below, old[key], new[key])


def _in_list(path: str, old: Sequence[Any], new: Sequence[Any]) -> Iterator[str]:
    last = path.rpartition(".")[2]
    if last in _NAMED_LISTS:
        yield from _in_named_list(path, _by_name(old), _by_name(new))
    elif last == "args":
        yield from (f"{path}: {change}" for change in _in_arguments(old, new))
    else:
        yield f"{path}: changed"


def _in_named_list(path: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    for name in [*old, *(name for name in new if name not in old)]:
        below = f"{path}[{name}]"
        if name not in new:
            yield f"{below}: removed"
        elif name not in old:
            yield f"{below}: added"
        else:
            yield from _differences(below, old[name], new[name])


def _by_name(items: Sequence[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    return {str(item.get("mountPath", item.get("name"))): item for item in items}


def _in_arguments(old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    before, after = _options(old), _options(new)
    yield from (f"{option} removed" for option in before if option not in after)
    yield from (f"{option} added" for option in after if option not in before)
    yield from (f"{option} changed" for option in after if option in before and before[option] != after[option])
    if before == after:
        yield "order changed"


def _options(arguments: Sequence[str]) -> dict[str, list[str]]:
    """Group an argument list by option; what stands before the first one counts as ``the model``."""
    options: dict[str, list[str]] = {}
    current = "the model"
    for word in arguments:
        current = word.partition("=")[0] if word.startswith("-") and not word[1:2].isdigit() else current
        options.setdefault(current, []).append(word)
    return options


def _change(path: str, old: object, new: object) -> str:
    last = path.rpartition(".")[2]
    known = last in _SHOWN or ".resources." in path
    return f"{old} -> {new}" if known else "changed"
