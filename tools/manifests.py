"""Files that follow from the CustomResourceDefinition: ``crds/``, and the chart's copy."""

import copy
from collections.abc import Mapping
from typing import Any

import yaml

from stoker.api.crd import inference_service_crd

NOTE = "# Generated from operator/stoker/api by `make generate`; changes here are lost.\n"


def crd_manifest() -> str:
    """Return ``crds/serving.stoker.dev_inferenceservices.yaml``."""
    return NOTE + _yaml(inference_service_crd())


def chart_manifest() -> str:
    """Return the chart's template: kept when the chart is uninstalled, and safe from Helm's own braces."""
    crd: dict[str, Any] = copy.deepcopy(dict(inference_service_crd()))
    crd["metadata"]["annotations"] = {"helm.sh/resource-policy": "keep"}
    return NOTE + _yaml(crd).replace("{{", "{{ `{{` }}")


class _Dumper(yaml.SafeDumper):
    """Writes equal parts out in full: an alias would be refused."""

    def ignore_aliases(self, data: object) -> bool:
        """Never write an alias."""
        return True


def _yaml(document: Mapping[str, Any]) -> str:
    return yaml.dump(dict(document), Dumper=_Dumper, sort_keys=False, width=110, allow_unicode=True)
