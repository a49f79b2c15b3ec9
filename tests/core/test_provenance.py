"""Hashes: one for one content, whatever the order of keys."""

import json

from optimizer.instance.model import Instance
from optimizer.provenance import canonical_json, catalog_sha256, factors_sha256, instance_sha256
from tests.core.hand import instance


def test_canonical_json_has_one_text_for_one_content() -> None:
    assert canonical_json({"b": 1, "a": [1.5, "ü"]}) == '{"a":[1.5,"ü"],"b":1}'
    assert canonical_json({"a": 1, "b": 2}) == canonical_json({"b": 2, "a": 1})


def test_hash_of_an_instance_follows_its_content_alone() -> None:
    content = instance().model_dump(mode="json", by_alias=True, exclude_unset=True)
    again = Instance.model_validate_json(json.dumps(dict(reversed(content.items()))))
    assert instance_sha256(again) == instance_sha256(instance())
    assert instance_sha256(instance(site={"racks": 5})) != instance_sha256(instance())
    # A default that is written down is the same instance.
    written = instance(site={"rack_units": instance().site.rack_units})
    assert instance_sha256(written) == instance_sha256(instance())


def test_where_the_schema_stands_does_not_count() -> None:
    content = instance().model_dump(mode="json", by_alias=True, exclude_unset=True)
    with_schema = Instance.model_validate_json(json.dumps({"$schema": "somewhere.json", **content}))
    assert instance_sha256(with_schema) == instance_sha256(instance())


def test_hashes_of_packaged_data_are_stable_and_differ() -> None:
    assert catalog_sha256() == catalog_sha256()
    assert factors_sha256() == factors_sha256()
    assert catalog_sha256() != factors_sha256()
    assert all(len(one) == 64 for one in (catalog_sha256(), factors_sha256()))
