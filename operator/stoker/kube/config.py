"""Where the API server is and who we are to it: a kubeconfig, or the ServiceAccount of the pod."""

from __future__ import annotations

from kubernetes.aio.client import Configuration
from kubernetes.aio.config import ConfigException, load_incluster_config, load_kube_config


class ConfigurationError(Exception):
    """No usable way to reach a cluster; the message says what was tried."""


async def load_configuration(kubeconfig: str | None, context: str | None = None) -> Configuration:
    """Return a client configuration from a kubeconfig file, or from the pod's ServiceAccount when none is named.

    Raises ConfigurationError with a sentence for people. Tokens are read again as they are renewed.
    """
    configuration = Configuration()
    try:
        if kubeconfig:
            await load_kube_config(  # type: ignore[no-untyped-call]
                config_file=kubeconfig, context=context, client_configuration=configuration
            )
        else:
            load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]
    except (ConfigException, OSError, ValueError, KeyError) as problem:
        where = f"kubeconfig {kubeconfig!r}" if kubeconfig else "the pod's ServiceAccount"
        raise ConfigurationError(f"cannot use {where}: {problem}") from problem
    return configuration
