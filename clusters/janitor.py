"""Clean up after runs that were killed: what they started, and nothing else.

Each folder below the clusters' root names its owner. A folder whose owner is gone is a leftover, unless it was meant to
outlive its owner (a demo cluster).
"""

import json
import shutil
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from clusters import paths
from clusters.processes import ProcessRecord, end, is_alive, read_records, this_process


def claim(folder: Path) -> None:
    """Mark a folder as this process's: when the process is gone, the folder is a leftover."""
    paths.write_atomically(folder / "owner.json", json.dumps(asdict(this_process())))


def owner(folder: Path) -> ProcessRecord | None:
    """Who claimed a folder; None where nobody did, or where the claim cannot be read."""
    with suppress(FileNotFoundError, NotADirectoryError, json.JSONDecodeError, TypeError):
        return ProcessRecord(**json.loads((folder / "owner.json").read_text()))
    return None


def leftovers(prefix: str = "") -> list[Path]:
    """Folders of clusters whose owner is gone."""
    root = paths.clusters_root()
    folders = sorted(root.glob(f"{prefix}*")) if root.is_dir() else []
    claims = [(folder, owner(folder)) for folder in folders]
    return [folder for folder, claimed in claims if claimed is not None and not is_alive(claimed)]


def sweep(prefix: str) -> list[Path]:
    """End the programs of left-over clusters whose folder's name begins with `prefix`, and remove the folders."""
    swept = leftovers(prefix)
    for folder in swept:
        end(read_records(folder))
        shutil.rmtree(folder, ignore_errors=True)
    return swept


def keep_logs(folder: Path, label: str) -> None:
    """Keep the logs of a cluster that is about to be removed, in place of those of the one before it."""
    target = paths.cache_root() / "logs" / label
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    for log in (*folder.glob("logs/*.log"), *folder.glob("audit.log")):
        shutil.copyfile(log, target / log.name)
