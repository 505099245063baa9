"""From a service and its layout to manifests: one pure builder per kind of child."""
