"""`make demo`: a cluster, the operator, a model that answers, and what to try next."""

import argparse
import json
import os
import shutil
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from clusters import binaries, chart, demo_model, images, lifetime, project_images, providers
from clusters.current import CurrentCluster
from clusters.errors import ClusterError
from clusters.kubectl import Kubectl, program
from clusters.local import LocalCluster
from clusters.progress import elapsed, say, step
from clusters.providers import Provider
from clusters.run import run

ROOT = Path(__file__).resolve().parents[1]
QUICKSTART = ROOT / "examples/quickstart.yaml"
DEFAULT_NAME = "stoker-demo"
NAMESPACE = "default"
SERVICE = "smollm2"
PORT = 8000
OPERATOR_SECONDS = 180.0
READY_SECONDS = 300.0
POLL_SECONDS = 0.5
PROMPT = "What is the capital of France? Answer in one sentence."
QUESTION = {
    "model": "smollm2-135m",
    "messages": [{"role": "user", "content": PROMPT}],
    "max_tokens": 40,
    "temperature": 0,
}
NEXT = """
Try it yourself, with
  export KUBECONFIG={kubeconfig}{path}
  kubectl get infsvc -o wide --watch    # in a terminal of its own
scale it
  kubectl scale infsvc smollm2 --replicas=2
break it, see what it says and that the old pod goes on serving, and mend it
  kubectl patch infsvc smollm2 --type=merge -p '{{"spec":{{"model":{{"source":"pvc://smollm2/nothing.gguf"}}}}}}'
  kubectl describe infsvc smollm2
  {apply}
kill the engines, and see them come back
  kubectl delete pod -l serving.stoker.dev/service=smollm2
talk to it
  {make} talk{named} SAY='Name three colours.'
see how a large model would lie on its GPUs, without any
  PYTHONPATH=operator .venv/bin/python -m stoker plan -f examples/llama-3.1-70b-tp4.yaml
and remove all of it
  {remove}
"""
APPLY = "kubectl apply -f examples/quickstart.yaml"
# A cluster of the user's own is not taken down.
REMOVE = """kubectl delete infsvc/smollm2 pvc/smollm2 namespace/stoker-system
  kubectl delete clusterrole,clusterrolebinding -l app.kubernetes.io/name=stoker
  kubectl delete crd inferenceservices.serving.stoker.dev"""


def demo(provider: Provider, registry: str = "") -> None:
    """Bring everything up and show an answer; images are pulled from `registry` where one is given.

    Raises ClusterError with what went wrong and where to look.
    """
    if isinstance(provider, CurrentCluster) and not registry:
        raise ClusterError(
            "the cluster of the current context pulls its images: push what `make images` prints, as docs/install.md "
            "says, and run make demo CLUSTER=current REGISTRY=registry.example.com/stoker"
        )
    started = time.monotonic()
    with ThreadPoolExecutor(max_workers=1) as pool:
        prepared = pool.submit(_prepare, registry)
        provider.up()
        archives = prepared.result()
    kubectl = Kubectl(provider.kubeconfig)
    _load(provider, archives)
    _install(provider, kubectl, archives, registry)
    demo_model.put(provider, kubectl, NAMESPACE, located(project_images.STOKER, registry))
    kubectl("-n", NAMESPACE, "apply", "-f", "-", stdin=located(QUICKSTART.read_text(encoding="utf-8"), registry))
    with step("waiting for the operator"):
        words = ("rollout", "status", "deployment/stoker-operator", f"--timeout={OPERATOR_SECONDS:.0f}s")
        kubectl("-n", chart.NAMESPACE, *words, timeout_seconds=OPERATOR_SECONDS + 30)
    with step(f"waiting until the InferenceService {SERVICE} is ready"):
        await_ready(kubectl)
    print(f"\nQ: {PROMPT}\nA: {ask(provider, kubectl, QUESTION)}\n")
    print(kubectl("-n", NAMESPACE, "get", "infsvc"), end="")
    print(f"\nAll of it took {elapsed(time.monotonic() - started)}.")
    print(next_steps(provider, registry))


def located(text: str, registry: str) -> str:
    """Return a text with this project's images named as the registry has them, where one is given."""
    return text.replace(project_images.PUBLISHER, registry) if registry else text


def next_steps(provider: Provider, registry: str) -> str:
    """What to try on this very cluster."""
    make, named = _make_words(provider)
    elsewhere = f"sed 's#{project_images.PUBLISHER}#{registry}#' examples/quickstart.yaml | kubectl apply -f -"
    return NEXT.format(
        kubeconfig=provider.kubeconfig,
        path=kubectl_path(),
        apply=elsewhere if registry else APPLY,
        make=make,
        named=named,
        remove=REMOVE if isinstance(provider, CurrentCluster) else f"{make} down{named}",
    )


def _make_words(provider: Provider) -> tuple[str, str]:
    """What stands before and after a target of make for it to be about this very cluster."""
    chosen = os.environ.get("CLUSTER")
    name = getattr(provider, "name", DEFAULT_NAME)
    return f"CLUSTER={chosen} make" if chosen else "make", f" NAME={name}" * (name != DEFAULT_NAME)


def kubectl_path() -> str:
    """The line that puts kubectl on the user's path, where it is not there already."""
    return "" if shutil.which("kubectl") else f"\n  export PATH={program().parent}:$PATH"


def _prepare(registry: str) -> list[Path]:
    """Build the images unless they are pulled, fetch the model and build helm, beside the start of the cluster."""
    demo_model.fetch()
    archives = [] if registry else [images.build(recipe) for recipe in project_images.recipes()]
    binaries.ensure(["helm"])
    return archives


def _load(provider: Provider, archives: Sequence[Path]) -> None:
    for archive in archives:
        with step(f"loading the image {archive.name}"):
            provider.load_image(archive)


def _install(provider: Provider, kubectl: Kubectl, archives: Sequence[Path], registry: str) -> None:
    # An image that was built anew has its old name: what it is made from must be seen in the pods for them to change.
    made_from = {"pod.annotations": {"stoker.dev/archives": ",".join(archive.stem for archive in archives)}}
    pulled = {"image.repository": f"{registry}/stoker"}
    with step("installing the operator with Helm"):
        kubectl.apply(chart.namespace_object())
        chart.install(provider.kubeconfig, pulled if registry else made_from)
        crd = "crd/inferenceservices.serving.stoker.dev"
        kubectl("wait", "--for=condition=Established", crd, "--timeout=60s", timeout_seconds=90)


def await_ready(kubectl: Kubectl, timeout_seconds: float = READY_SECONDS) -> None:
    """Wait until the service is Ready, and say each time why it is not yet. Raises ClusterError when it cannot be."""
    started, said = time.monotonic(), ""
    while True:
        found = kubectl.get("-n", NAMESPACE, "infsvc", SERVICE)
        state = describe(found)
        passed = time.monotonic() - started
        if state != said:
            say(f"    {elapsed(passed):>6}  {state}")
            said = state
        if is_true(found, "Ready"):
            return
        if is_true(found, "Stalled") or passed > timeout_seconds:
            raise ClusterError(f"{SERVICE} is not ready: {state}\n{_where_to_look(kubectl)}")
        time.sleep(POLL_SECONDS)


def describe(service: dict[str, Any]) -> str:
    """Return one line about the state of a service; what is not of this generation does not count."""
    ready = _condition(service, "Ready")
    if not ready:
        return "the operator has not looked at it yet"
    return f"{ready.get('reason')}: {ready.get('message')}".strip(": ")


def is_true(service: dict[str, Any], kind: str) -> bool:
    """Whether a condition of this very generation is True."""
    return _condition(service, kind).get("status") == "True"


def _condition(service: dict[str, Any], kind: str) -> dict[str, Any]:
    generation = service.get("metadata", {}).get("generation")
    for condition in service.get("status", {}).get("conditions") or ():
        if condition["type"] == kind and condition.get("observedGeneration") == generation:
            return dict(condition)
    return {}


def _where_to_look(kubectl: Kubectl) -> str:
    words = f"kubectl --kubeconfig={kubectl.kubeconfig}"
    return "\n".join(
        (
            "look at",
            f"  {words} describe infsvc {SERVICE}",
            f"  {words} describe pods -l serving.stoker.dev/service={SERVICE}",
            f"  {words} -n {chart.NAMESPACE} logs deployment/stoker-operator",
        )
    )


def ask(provider: Provider, kubectl: Kubectl, question: dict[str, Any]) -> str:
    """Send a chat request and return the answer: through the ClusterIP where this machine can reach it, else through
    the API server."""
    if isinstance(provider, LocalCluster):
        enter = provider.enter()  # which says so where the cluster is down
        service = kubectl.get("-n", NAMESPACE, "service", SERVICE)
        url = f"http://{service['spec']['clusterIP']}:{PORT}/v1/chat/completions"
        command = [*enter, sys.executable, "-m", "clusters.ask", url]
        answer = json.loads(run(command, stdin=json.dumps(question), timeout_seconds=150, cwd=ROOT))
    else:
        path = f"/api/v1/namespaces/{NAMESPACE}/services/{SERVICE}:{PORT}/proxy/v1/chat/completions"
        answer = kubectl.post(path, question)
    return str(answer["choices"][0]["message"]["content"]).strip()


def talk(provider: Provider, words: str) -> str:
    """Say something to the model of a demo that is up and return its answer.

    Raises ClusterError, where there is none, with what the service says of itself.
    """
    make, named = _make_words(provider)
    remedy = f"bring the demo up with `{make} demo{named}`"
    if isinstance(provider, CurrentCluster):
        provider.up()  # which names the context where it does not answer
    elif not provider.is_up():
        raise ClusterError(f"cluster {getattr(provider, 'name', DEFAULT_NAME)} is not up; {remedy}")
    kubectl = Kubectl(provider.kubeconfig)
    has_kind = kubectl.get("crd", "inferenceservices.serving.stoker.dev")
    service = kubectl.get("-n", NAMESPACE, "infsvc", SERVICE) if has_kind else {}
    if not service:
        raise ClusterError(f"there is no {SERVICE} in the namespace {NAMESPACE}; {remedy}")
    if service["spec"].get("replicas") == 0:
        raise ClusterError(f"{SERVICE} is stopped: scale it up (kubectl scale infsvc {SERVICE} --replicas=1)")
    question = {**QUESTION, "messages": [{"role": "user", "content": words}], "max_tokens": 200}
    try:
        return ask(provider, kubectl, question)
    except ClusterError:
        # Not asked before: what is not Ready may answer, by pods of an older revision.
        if is_true(service, "Ready"):
            raise
        raise ClusterError(f"{SERVICE} is not ready: {describe(service)}") from None


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo, or say one thing to its model; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m clusters.demo", description=__doc__)
    parser.add_argument("--provider", choices=providers.NAMES, default=os.environ.get("CLUSTER") or None)
    parser.add_argument("--name", default=DEFAULT_NAME, help=f"the cluster's name (default: {DEFAULT_NAME})")
    parser.add_argument("--registry", default="", help="pull the images from there instead of building them")
    parser.add_argument("--say", help="only send this to the model of a demo that is up")
    given = parser.parse_args(arguments)
    if given.say is not None and not given.say.strip():
        print("demo: there is nothing to say; write it: make talk SAY='Name three colours.'", file=sys.stderr)
        return 2
    lifetime.end_with_parent()
    try:
        provider = providers.choose(given.provider, given.name)
        if given.say is not None:
            print(talk(provider, given.say))
        else:
            demo(provider, given.registry.rstrip("/"))
    except ClusterError as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
