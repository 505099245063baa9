"""The objects that people write: pydantic models that are the single source of the CRDs, the reference and the checks.

JSON is camelCase, Python snake_case. An optional field that is absent is ``None``: what holds then is decided further
up (``plan``, ``engines``), never by a default in the schema, ``spec.replicas`` apart.
"""

from stoker.api.faults import Fault
from stoker.api.inferenceservice import InferenceService, InferenceServiceSpec
from stoker.api.parse import parse_inference_service

__all__ = ["Fault", "InferenceService", "InferenceServiceSpec", "parse_inference_service"]
