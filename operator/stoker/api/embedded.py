"""Kubernetes' own types inside our objects (affinity, tolerations, volume sources, ...).

They stay mappings as the user wrote them, checked against structural schemas. ``make generate`` derives the schemas
from the models of the Kubernetes client and writes them to ``kubernetes_types.json``, so that nothing here needs that
client.
"""

import json
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import resources
from typing import Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import PydanticCustomError, core_schema

from stoker.api.faults import Fault, join
from stoker.api.structural import check

Embedded = Mapping[str, Any]
"""A Kubernetes object as JSON has it."""

ERROR_TYPE = "kubernetes_type"
"""Type of the pydantic error that carries the faults of an embedded object."""


@cache
def kubernetes_types() -> Mapping[str, dict[str, Any]]:
    """Return the structural schemas of the embedded Kubernetes types, by the client's name (``V1Affinity``)."""
    text = resources.files("stoker.api").joinpath("kubernetes_types.json").read_text(encoding="utf-8")
    schemas: dict[str, dict[str, Any]] = json.loads(text)
    return schemas


class KubernetesType:
    """Annotates a mapping with the Kubernetes type that it must be."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:  # noqa: ANN401 - pydantic's protocol
        """Check the mapping against the type's schema."""
        return core_schema.no_info_plain_validator_function(
            self._validate, serialization=core_schema.plain_serializer_function_ser_schema(dict)
        )

    def __get_pydantic_json_schema__(
        self, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """Return the type's structural schema."""
        return kubernetes_types()[self.name]

    def _validate(self, value: object) -> Embedded:
        faults = list(check(kubernetes_types()[self.name], value, ""))
        if faults or not isinstance(value, Mapping):
            raise PydanticCustomError(ERROR_TYPE, "not a Kubernetes object of this type", {"faults": faults})
        return value


def faults_of(context: Mapping[str, Any], path: str) -> Iterator[Fault]:
    """Return the faults that an error of ``ERROR_TYPE`` carries, below ``path``."""
    for fault in context["faults"]:
        yield Fault(join(path, fault.path) if not fault.path.startswith("[") else path + fault.path,
                    fault.problem, fault.remedy, fault.reason)  # fmt: skip
