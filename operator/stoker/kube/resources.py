"""The kinds that the operator reads and writes, and their paths."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote


@dataclass(frozen=True, slots=True)
class Resource:
    """One kind as the API server serves it."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        """``group/version``, or the version alone for the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def root(self) -> str:
        """The path of the group and version."""
        return f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"

    def path(self, namespace: str | None = None, name: str | None = None, subresource: str | None = None) -> str:
        """Return the path of the collection, of one object, or of a subresource. Every part is escaped (N20)."""
        parts = [self.root]
        if self.namespaced and namespace is not None:
            parts.append(f"namespaces/{quote(namespace, safe='')}")
        parts.append(self.plural)
        if name is not None:
            parts.append(quote(name, safe=""))
        if subresource is not None:
            parts.append(subresource)
        return "/".join(parts)


INFERENCE_SERVICE = Resource("serving.stoker.dev", "v1alpha1", "InferenceService", "inferenceservices")
DEPLOYMENT = Resource("apps", "v1", "Deployment", "deployments")
CONTROLLER_REVISION = Resource("apps", "v1", "ControllerRevision", "controllerrevisions")
SERVICE = Resource("", "v1", "Service", "services")
SERVICE_ACCOUNT = Resource("", "v1", "ServiceAccount", "serviceaccounts")
POD_DISRUPTION_BUDGET = Resource("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets")
NETWORK_POLICY = Resource("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies")
POD = Resource("", "v1", "Pod", "pods")
NODE = Resource("", "v1", "Node", "nodes", namespaced=False)
SECRET = Resource("", "v1", "Secret", "secrets")
CONFIG_MAP = Resource("", "v1", "ConfigMap", "configmaps")
PERSISTENT_VOLUME_CLAIM = Resource("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims")
EVENT = Resource("events.k8s.io", "v1", "Event", "events")
LEASE = Resource("coordination.k8s.io", "v1", "Lease", "leases")
CUSTOM_RESOURCE_DEFINITION = Resource(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False
)
SELF_SUBJECT_ACCESS_REVIEW = Resource(
    "authorization.k8s.io", "v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews", namespaced=False
)

CHILDREN: dict[str, Resource] = {
    resource.kind: resource
    for resource in (
        DEPLOYMENT,
        CONTROLLER_REVISION,
        SERVICE,
        SERVICE_ACCOUNT,
        POD_DISRUPTION_BUDGET,
        NETWORK_POLICY,
    )
}
"""The kinds that an InferenceService owns directly, by kind."""

REFERENCES: dict[str, Resource] = {
    resource.kind: resource for resource in (SECRET, CONFIG_MAP, PERSISTENT_VOLUME_CLAIM, SERVICE_ACCOUNT)
}
"""The kinds that a service may name, read one by one (N20)."""
