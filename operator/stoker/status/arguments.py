"""Arguments that an engine does not take: who gave them decides what there is to correct.

Those of ``spec.engine.args`` are the user's. The others Stoker rendered: the field of the spec that led to one is named
then, or the image, which may hold another program or version than the spec says.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from stoker.api.engine import EngineName
from stoker.api.inferenceservice import InferenceServiceSpec
from stoker.engines import llama_arguments, llama_cpp, vllm_arguments, vllm_owners
from stoker.engines.arguments import STOKER, Argument, Owner
from stoker.engines.vllm_table import vllm_options
from stoker.status.case import Case
from stoker.status.text import line_of, said

_ARGS, _IMAGE, _VERSION = "spec.engine.args", "spec.engine.image", "spec.engine.version"
_NAME = re.compile(r"(?<![^\s/,])(-{1,2}[A-Za-z][\w.-]{0,100})")


@dataclass(frozen=True, slots=True)
class _Origin:
    """Where an argument comes from: the user, a ``field`` of the spec, Stoker alone, or (none of it) nobody knows."""

    name: str
    is_users: bool = False
    field: str | None = None
    is_stokers: bool = False

    @property
    def rendered(self) -> str:
        """A clause about who rendered it; empty where Stoker did not."""
        if self.field:
            return f", which Stoker renders from {self.field}"
        return ", which Stoker renders itself" if self.is_stokers else ""


# ---- what is said --------------------------------------------------------------------------------------------------
def unknown(found: re.Match[str], case: Case) -> str:
    """Explain an argument that the engine's own parser does not know; the first group holds it."""
    version = case.spec.engine.version if case.spec else None
    at = f" at version {version}" if version else ""
    origin = _origin(found[1], case.spec)
    if origin.field:
        remedy = f"change {origin.field}, or correct {_VERSION} or {_IMAGE}"
    elif origin.is_stokers:
        remedy = f"correct {_VERSION} or {_IMAGE}"
    else:
        remedy = f"correct {_ARGS} or {_VERSION}" if origin.is_users else f"correct {_ARGS}, {_VERSION} or {_IMAGE}"
    return f"the engine{at} does not know the argument {found[1].strip()}{origin.rendered}; {remedy}"


def refused(found: re.Match[str], case: Case) -> str:
    """Explain an argument that a server refuses in words of its own; the first group holds it."""
    origin = _origin(found[1], case.spec)
    if case.spec and origin.field == "spec.model.source" and case.spec.model.source.startswith("hf://"):
        remedy = "set that to pvc://CLAIM/PATH, or "
    elif origin.field:
        remedy = f"change {origin.field}, or "
    else:
        remedy = "" if origin.is_stokers else f"correct {_ARGS}, or "
    remedy += f"take another {_IMAGE}"
    return f"the engine refuses the argument {found[1]}{origin.rendered}; {remedy}; {said(found)}"


def bad_value(found: re.Match[str], case: Case) -> str:
    """Explain a value that the engine refuses."""
    name = _NAME.search(found[0])
    origin = _origin(name[1] if name else "", case.spec)
    if origin.field:
        remedy = f"correct {origin.field}, from which Stoker renders it"
    elif origin.is_stokers:
        remedy = f"Stoker renders it itself: correct {_VERSION} or {_IMAGE}"
    else:
        remedy = f"correct {_ARGS}" + ("" if origin.is_users else ", or the field that stands for it")
    return f"the engine refused a value: {line_of(found)}; {remedy}"


# ---- who gave it ---------------------------------------------------------------------------------------------------
def _origin(words: str, spec: InferenceServiceSpec | None) -> _Origin:
    """Return where the first argument among ``words`` that the user gave comes from, else the first of all."""
    names = _NAME.findall(words)
    if spec is None or not names:
        return _Origin(names[0] if names else words)
    given = _read(spec, spec.engine.args or ())
    own = next((name for name in names if any(_is_same(name, spec, argument) for argument in given)), None)
    if own is not None:
        return _Origin(own, is_users=True)
    options = [option for argument in _read(spec, names[:1]) for option in argument.options]
    is_llama = spec.engine.name == EngineName.LLAMA_CPP
    fields = llama_arguments.FIELDS if is_llama else vllm_owners.FIELDS
    field = next((fields[option] for option in options if option in fields), None)
    return _Origin(names[0], field=field, is_stokers=_is_stokers(options, spec))


def _is_same(name: str, spec: InferenceServiceSpec, given: Argument) -> bool:
    """Whether an argument of the list is the one that the engine names, by its spelling or by what it means."""
    options = {option for argument in _read(spec, (name,)) for option in argument.options}
    return _head(given.text) == _head(name) or bool(options & set(given.options))


def _is_stokers(options: Sequence[str], spec: InferenceServiceSpec) -> bool:
    """Whether Stoker alone gives one of these options."""
    is_llama = spec.engine.name == EngineName.LLAMA_CPP
    owners: Mapping[str, Owner] = llama_arguments.OWNERS if is_llama else vllm_owners.OWNERS
    rendered = llama_cpp.RENDERED_FLAGS if is_llama else ()
    return any(owners.get(option) == STOKER or option in rendered for option in options)


def _read(spec: InferenceServiceSpec, words: Sequence[str]) -> Sequence[Argument]:
    if spec.engine.name == EngineName.LLAMA_CPP:
        return llama_arguments.read_arguments(words, None)
    return vllm_arguments.read_arguments(words, vllm_options(), None)


def _head(text: str) -> str:
    return text.partition("=")[0].replace("_", "-")
