"""Field ownership, on field sets as a 1.36 API server writes them."""

from typing import Any

import pytest

from stoker.kube.ownership import as_apply_entries, covers, others_fields, owned_fields, ownership_digest

MANIFEST: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {
        "name": "chat",
        "namespace": "team-a",
        "labels": {"app": "chat"},
        "ownerReferences": [{"uid": "u1", "controller": True}],
    },
    "spec": {
        "replicas": 2,
        "template": {
            "spec": {
                "containers": [
                    {
                        "name": "engine",
                        "args": ["serve", "model"],
                        "ports": [{"containerPort": 8000, "name": "http"}],
                        "volumeMounts": [{"mountPath": "/cache", "name": "cache", "readOnly": False}],
                    }
                ],
                "volumes": [{"name": "cache", "emptyDir": {}}],
            }
        },
    },
}

FIELDS: dict[str, Any] = {
    "f:metadata": {
        "f:labels": {".": {}, "f:app": {}},
        "f:ownerReferences": {".": {}, 'k:{"uid":"u1"}': {}},
    },
    "f:spec": {
        "f:replicas": {},
        "f:template": {
            "f:spec": {
                "f:containers": {
                    'k:{"name":"engine"}': {
                        ".": {},
                        "f:name": {},
                        "f:args": {},
                        "f:ports": {
                            ".": {},
                            'k:{"containerPort":8000,"protocol":"TCP"}': {".": {}, "f:containerPort": {}, "f:name": {}},
                        },
                        "f:volumeMounts": {
                            ".": {},
                            'k:{"mountPath":"/cache"}': {".": {}, "f:mountPath": {}, "f:name": {}},
                        },
                    }
                },
                "f:volumes": {".": {}, 'k:{"name":"cache"}': {".": {}, "f:emptyDir": {}, "f:name": {}}},
            }
        },
    },
}


def an_entry(fields: dict[str, Any], manager: str = "stoker", operation: str = "Update", **more: str) -> dict[str, Any]:
    return {"manager": manager, "operation": operation, "fieldsType": "FieldsV1", "fieldsV1": fields, **more}


def without(fields: dict[str, Any], *path: str) -> dict[str, Any]:
    if len(path) == 1:
        return {key: value for key, value in fields.items() if key != path[0]}
    inner = without(fields[path[0]], *path[1:])
    return {**fields, path[0]: inner} if inner else without(fields, path[0])


def covered(*entries: dict[str, Any]) -> bool:
    return covers(owned_fields(entries, "stoker"), others_fields(entries, "stoker"), MANIFEST)


def test_all_fields_of_a_create_are_owned() -> None:
    assert covered(an_entry(FIELDS))


@pytest.mark.parametrize(
    "path",
    [
        ("f:spec", "f:replicas"),
        ("f:metadata", "f:labels", "f:app"),
        ("f:metadata", "f:ownerReferences", 'k:{"uid":"u1"}'),
        ("f:spec", "f:template", "f:spec", "f:containers", 'k:{"name":"engine"}', "f:args"),
        ("f:spec", "f:template", "f:spec", "f:containers", 'k:{"name":"engine"}'),
        ("f:spec", "f:template", "f:spec", "f:volumes", 'k:{"name":"cache"}', "f:emptyDir"),
    ],
    ids=lambda path: path[-1],
)
def test_a_field_that_somebody_took_or_removed_is_noticed(path: tuple[str, ...]) -> None:
    fields = without(FIELDS, *path)
    stolen = an_entry({}, "kubectl-edit")
    if path[-1].startswith("f:emptyDir"):
        stolen = an_entry(
            {"f:spec": {"f:template": {"f:spec": {"f:volumes": {'k:{"name":"cache"}': {"f:emptyDir": {}}}}}}},
            "kubectl-edit",
        )
    assert not covered(an_entry(fields), stolen)


def test_ownership_by_apply_and_by_update_adds_up() -> None:
    spec = {"f:spec": FIELDS["f:spec"]}
    metadata = {"f:metadata": FIELDS["f:metadata"]}
    assert covered(an_entry(spec, operation="Apply"), an_entry(metadata))
    assert not covered(an_entry(spec, operation="Apply"))


def test_what_is_owned_in_a_subresource_does_not_count() -> None:
    assert not covered(an_entry(FIELDS, subresource="status"))


def test_a_zero_that_the_types_leave_out_counts_as_owned_until_somebody_sets_it() -> None:
    taken: dict[str, Any] = {
        "f:spec": {
            "f:template": {
                "f:spec": {
                    "f:containers": {
                        'k:{"name":"engine"}': {"f:volumeMounts": {'k:{"mountPath":"/cache"}': {"f:readOnly": {}}}}
                    }
                }
            }
        }
    }
    assert not covered(an_entry(FIELDS), an_entry(taken, "kubectl-edit"))


def test_items_that_somebody_put_in_the_place_of_all_of_ours_are_noticed() -> None:
    replaced: dict[str, Any] = {"f:spec": {"f:ports": {'k:{"port":1,"protocol":"TCP"}': {".": {}, "f:port": {}}}}}
    mine: dict[str, Any] = {"f:metadata": {}, "f:spec": {"f:ports": {}, "f:selector": {}}}
    manifest = {"metadata": {}, "spec": {"ports": [{"port": 8000}], "selector": {"a": "b"}}}
    alone, beside = [an_entry(mine)], [an_entry(mine), an_entry(replaced, "kubectl-patch")]
    assert covers(owned_fields(alone, "stoker"), others_fields(alone, "stoker"), manifest)
    assert not covers(owned_fields(beside, "stoker"), others_fields(beside, "stoker"), manifest)


def test_the_digest_changes_with_our_fields_and_with_nothing_else() -> None:
    mine, status = an_entry(FIELDS), an_entry({"f:status": {}}, "kube-controller-manager", subresource="status")
    before = ownership_digest([mine], "stoker")
    assert ownership_digest([status, mine], "stoker") == before
    assert ownership_digest([{**mine, "time": "2030-01-01T00:00:00Z"}], "stoker") == before
    assert ownership_digest([an_entry(without(FIELDS, "f:spec", "f:replicas"))], "stoker") != before


def test_the_hand_over_turns_our_update_into_an_apply_and_leaves_the_others() -> None:
    other = an_entry({"f:spec": {"f:paused": {}}}, "kubectl-edit")
    status = an_entry({"f:status": {}}, "stoker", subresource="status")
    entries = as_apply_entries([other, an_entry(FIELDS), status], "stoker")
    assert entries is not None
    assert entries[:2] == [other, status]
    assert (entries[2]["operation"], entries[2]["fieldsV1"]) == ("Apply", FIELDS)


def test_the_hand_over_joins_two_entries_of_ours() -> None:
    apply = an_entry({"f:spec": FIELDS["f:spec"]}, operation="Apply")
    entries = as_apply_entries([an_entry({"f:metadata": FIELDS["f:metadata"]}), apply], "stoker")
    assert entries is not None
    assert [entry["fieldsV1"] for entry in entries] == [FIELDS]


def test_there_is_nothing_to_hand_over_after_an_apply() -> None:
    assert as_apply_entries([an_entry(FIELDS, operation="Apply")], "stoker") is None
