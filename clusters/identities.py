"""Who may talk to the API server of a local cluster: static tokens, and kubeconfig files that carry one."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from clusters import paths


@dataclass(frozen=True, slots=True)
class User:
    """A name and the groups that it is in, as RBAC sees them."""

    name: str
    groups: tuple[str, ...] = ()


ADMIN = User("admin", ("system:masters",))
CONTROLLER_MANAGER = User("system:kube-controller-manager")
SCHEDULER = User("system:kube-scheduler")
# kwok plays the kubelets of all its nodes, which the node authorizer would not let one user do.
KWOK = User("kwok", ("system:masters",))
KUBE_PROXY = User("system:kube-proxy")
COMPONENTS = (ADMIN, CONTROLLER_MANAGER, SCHEDULER, KWOK, KUBE_PROXY)


def node_user(node_name: str) -> User:
    """The identity under which the kubelet of a node is known to the node authorizer."""
    return User(f"system:node:{node_name}", ("system:nodes",))


def write_token_file(path: Path, users: Sequence[User]) -> dict[User, str]:
    """Write the API server's token file, readable by its owner alone, and return each user's token."""
    tokens = {user: secrets.token_urlsafe(24) for user in users}
    rows = [_row(token, user, number) for number, (user, token) in enumerate(tokens.items())]
    paths.write_atomically(path, "".join(rows), mode=0o600)
    return tokens


def read_token_file(path: Path) -> dict[User, str]:
    """The users and tokens of a token file that `write_token_file` wrote."""
    users: dict[User, str] = {}
    for line in path.read_text().splitlines():
        token, name, _, groups = line.split(",", 3)
        users[User(name, tuple(filter(None, groups.strip('"').split(","))))] = token
    return users


def kubeconfig(server: str, certificate_authority: Path, token: str, user: str) -> str:
    """A kubeconfig with one context."""
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "stoker",
        "clusters": [
            {"name": "stoker", "cluster": {"server": server, "certificate-authority": str(certificate_authority)}}
        ],
        "users": [{"name": user, "user": {"token": token}}],
        "contexts": [{"name": "stoker", "context": {"cluster": "stoker", "user": user}}],
    }
    return yaml.safe_dump(document, sort_keys=False)


def _row(token: str, user: User, number: int) -> str:
    return f'{token},{user.name},uid-{number},"{",".join(user.groups)}"\n'
