"""What a change of a referenced object does (rule N19): every reference of the API declares one effect."""

from dataclasses import dataclass
from enum import StrEnum

from pydantic import GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

EFFECT_KEY, KIND_KEY = "x-stoker-effect", "x-stoker-reference"
"""Keys under which a schema carries the effect and the kind until the CRD is made of it."""


class Effect(StrEnum):
    """What happens when the content of a referenced object changes; the value is what the API reference says."""

    NEW_REVISION = "a change of its content makes a new revision: the pods are replaced"
    NEXT_START = "a change of its content is used by pods that start later; nothing is replaced"
    IN_PLACE = (
        "a change of its content reaches running pods as Kubernetes updates the mounted files; nothing is replaced"
    )
    OUTDATED = "its content is frozen in the revision; a change is shown as outdated and replaces nothing"


@dataclass(frozen=True, slots=True)
class Reference:
    """Marks a field as the name of another object (``kind``), with the effect of a change of that object."""

    kind: str
    effect: Effect

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Carry the effect to the reference and to the description of the field."""
        return {**handler(core), EFFECT_KEY: self.effect.value, KIND_KEY: self.kind}
