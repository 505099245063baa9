"""Write the revisions of the present version: done once, at its release."""

import sys

import yaml

from stoker import __version__
from stoker.cli.output import to_yaml
from tests.golden import harness as golden
from tests.revisions.harness import ROOT

folder = ROOT / __version__
if folder.exists() and "--again" not in sys.argv:
    sys.exit(f"{folder} exists: a release's revisions are written once; raise the version first")
folder.mkdir(parents=True, exist_ok=True)
for case in golden.cases():
    service = yaml.safe_load((golden.ROOT / case / "infsvc.yaml").read_text(encoding="utf-8"))
    text = to_yaml([service, golden.objects(case)["ControllerRevision"]])
    (folder / f"{case}.yaml").write_text(text, encoding="utf-8")
    print(f"written  {case}")
