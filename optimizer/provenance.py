"""Hashes of what an answer rests on: the instance, the packaged catalogue, the performance factors."""

import hashlib
import json
from functools import cache
from importlib import resources

from optimizer.instance.model import Instance


def canonical_json(value: object) -> str:
    """JSON with sorted keys and no spaces: one text for one content."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def instance_sha256(instance: Instance) -> str:
    """Hash of the resolved instance: what was read, defaults filled in. Where it stands on a disk does not count."""
    content = instance.model_dump(mode="json", by_alias=True)
    content.pop("$schema", None)
    return hashlib.sha256(canonical_json(content).encode()).hexdigest()


def catalog_sha256() -> str:
    """Hash of the packaged catalogue's files."""
    return _package_sha256("optimizer.catalog", "data")


def factors_sha256() -> str:
    """Hash of the packaged performance constants."""
    return _package_sha256("optimizer.performance", "data")


@cache
def _package_sha256(package: str, folder: str) -> str:
    digest = hashlib.sha256()
    files = [one for one in resources.files(package).joinpath(folder).iterdir() if one.is_file()]
    for one in sorted(files, key=lambda item: item.name):
        digest.update(one.name.encode())
        digest.update(one.read_bytes())
    return digest.hexdigest()
