"""Which objects a spec names."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from stoker.api.parse import parse_inference_service
from stoker.api.pod import MAX_PROJECTED_SOURCES
from stoker.kube.naming import MAX_REFERENCES, Named, named_objects
from stoker.status.case import Case
from stoker.status.diagnosis import diagnose
from tests.builders.failures import waiting
from tests.builders.specs import SpecBuilder, a_spec


def an_env(name: str, kind: str, source: str, key: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "valueFrom": {kind: {"name": source, "key": key, **more}}}


def test_each_reference_is_found_with_its_path() -> None:
    spec = {
        "model": {"source": "pvc://models/dir/x.gguf", "credentialsSecret": "hub", "facts": {"configMapName": "facts"}},
        "pod": {
            "env": [
                an_env("A", "secretKeyRef", "s1", "k"),
                {"name": "B", "value": "x"},
                an_env("C", "configMapKeyRef", "c1", "k"),
            ],
            "volumes": [
                {"name": "v1", "secret": {"secretName": "s2"}},
                {"name": "v2", "configMap": {"name": "c2", "optional": True}},
                {"name": "v3", "persistentVolumeClaim": {"claimName": "p1"}},
                {"name": "v4", "projected": {"sources": [{"secret": {"name": "s3"}}, {"configMap": {"name": "c3"}}]}},
                {"name": "v5", "emptyDir": {}},
            ],
            "imagePullSecrets": [{"name": "pull"}],
            "serviceAccountName": "runner",
        },
    }
    assert named_objects(spec) == (
        Named("PersistentVolumeClaim", "models", "spec.model.source"),
        Named("Secret", "hub", "spec.model.credentialsSecret"),
        Named("ConfigMap", "facts", "spec.model.facts.configMapName", reads=True),
        Named("Secret", "s1", "spec.pod.env[0].valueFrom.secretKeyRef.name", keys=("k",)),
        Named("ConfigMap", "c1", "spec.pod.env[2].valueFrom.configMapKeyRef.name", keys=("k",)),
        Named("Secret", "s2", "spec.pod.volumes[0].secret.secretName"),
        Named("ConfigMap", "c2", "spec.pod.volumes[1].configMap.name", optional=True),
        Named("PersistentVolumeClaim", "p1", "spec.pod.volumes[2].persistentVolumeClaim.claimName"),
        Named("Secret", "s3", "spec.pod.volumes[3].projected.sources[0].secret.name"),
        Named("ConfigMap", "c3", "spec.pod.volumes[3].projected.sources[1].configMap.name"),
        Named("Secret", "pull", "spec.pod.imagePullSecrets[0].name"),
        Named("ServiceAccount", "runner", "spec.pod.serviceAccountName"),
    )


def test_N19_the_keys_that_variables_take_from_one_object_are_joined() -> None:
    env = [
        an_env("A", "secretKeyRef", "s", "z", optional=True),
        an_env("B", "secretKeyRef", "s", "a"),
        an_env("C", "secretKeyRef", "s", "z"),
    ]
    (named,) = named_objects({"pod": {"env": env}})
    assert (named.keys, named.optional) == (("a", "z"), False)


def test_a_field_is_named_by_its_place_as_everywhere_else() -> None:
    """The parser, the API server, the reader of references and the diagnosis of a pod say the same of one variable."""
    sources = {"Secret": "secretKeyRef", "ConfigMap": "configMapKeyRef"}
    for kind, source in sources.items():
        env = [{"name": "A", "value": "x"}, an_env("B", source, "keys", "k"), an_env("C", source, "keys", "other")]
        spec = a_spec().set("pod.env", env)
        (named,) = named_objects(spec.raw())
        assert named.field_path == f"spec.pod.env[1].valueFrom.{source}.name"
        case = Case(waiting("CreateContainerConfigError", f'{kind.lower()} "keys" not found'), spec.build())
        diagnosis = diagnose(case)
        assert diagnosis is not None
        assert diagnosis.message.endswith(f" {named.field_path}")
        no_key = Case(waiting("CreateContainerConfigError", f"couldn't find key other in {kind} t/keys"), spec.build())
        diagnosis = diagnose(no_key)
        assert diagnosis is not None
        assert diagnosis.message.endswith(f" spec.pod.env[2].valueFrom.{source}.key")
        faults = parse_inference_service(a_spec().set("pod.env", [env[0], {**env[1], "value": "x"}]).manifest())
        assert isinstance(faults, list)
        assert [fault.path for fault in faults] == ["spec.pod.env[1].value"]


def test_what_is_no_object_moves_no_place() -> None:
    spec = {"pod": {"env": ["nonsense", an_env("A", "secretKeyRef", "s", "k")], "imagePullSecrets": [1, {"name": "p"}]}}
    assert [named.field_path for named in named_objects(spec)] == [
        "spec.pod.env[1].valueFrom.secretKeyRef.name",
        "spec.pod.imagePullSecrets[1].name",
    ]


def test_a_hub_source_names_no_claim() -> None:
    assert named_objects({"model": {"source": "hf://a/b"}}) == ()


def a_spec_that_names_all_it_may() -> SpecBuilder:
    """Every list of references at its bound, each entry naming an object of its own."""
    env = [an_env(f"V{i}", "secretKeyRef", f"e{i}", "k") for i in range(64)]
    sources: list[dict[str, Any]] = [{"configMap": {"name": f"p{i}"}} for i in range(MAX_PROJECTED_SOURCES)]
    projected: list[dict[str, Any]] = [
        {"projected": {"sources": sources[first : first + 32]}} for first in range(0, len(sources), 32)
    ]
    secrets: list[dict[str, Any]] = [{"secret": {"secretName": f"v{i}"}} for i in range(32 - len(projected))]
    volumes = [{"name": f"v{i}", "mountPath": f"/v{i}", **v} for i, v in enumerate((*projected, *secrets))]
    pull = [{"name": f"pull{i}"} for i in range(16)]
    spec = a_spec().set("pod.env", env).set("pod.volumes", volumes).set("pod.imagePullSecrets", pull)
    spec = spec.set("model.credentialsSecret", "hub").set("model.facts.configMapName", "facts")
    return spec.set("pod.serviceAccountName", "runner")


def test_no_reference_of_a_spec_that_is_taken_is_left_out() -> None:
    spec = a_spec_that_names_all_it_may()
    spec.build()
    named = named_objects(spec.raw())
    assert len(named) == 64 + MAX_PROJECTED_SOURCES + 28 + 16 + 3 < MAX_REFERENCES
    assert len({each.name for each in named}) == len(named)


def test_a_spec_that_names_more_is_told_the_field_and_the_bound() -> None:
    spec = a_spec_that_names_all_it_may()
    volumes = spec.raw()["pod"]["volumes"]
    volumes[-1] = {"name": "x", "mountPath": "/x", "projected": {"sources": [{"secret": {"name": "one-more"}}]}}
    faults = parse_inference_service(spec.set("pod.volumes", volumes).manifest())
    assert isinstance(faults, list)
    assert [fault.path for fault in faults] == ["spec.pod.volumes"]
    assert f"more than {MAX_PROJECTED_SOURCES} sources" in str(faults[0])


def test_the_number_of_references_is_bounded() -> None:
    env = [an_env(f"V{i}", "secretKeyRef", f"s{i}", "k") for i in range(1000)]
    assert len(named_objects({"pod": {"env": env}})) == MAX_REFERENCES


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["model", "pod", "env", "volumes", "source", "secret", "valueFrom", "name", "facts"]), inner
        )
    ),
    max_leaves=15,
)


@given(st.dictionaries(st.sampled_from(["model", "pod"]), JSON))
def test_a_malformed_spec_names_what_it_can_and_never_fails(spec: dict[str, Any]) -> None:
    assert all(named.name for named in named_objects(spec))
