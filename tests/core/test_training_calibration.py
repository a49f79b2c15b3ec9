"""workload.calibration of a training instance names a file of optimize calibrate on training steps."""

import json
from pathlib import Path

import pytest

from optimizer import api
from optimizer.calibration.training.calibrate import calibrate_training
from optimizer.calibration.training.packaged import packaged_text
from optimizer.errors import InputError
from optimizer.performance.training.constants import calibration_with
from tests.instance import samples


def written(folder: Path, document: object, value: dict[str, object]) -> Path:
    (folder / "own.json").write_text(json.dumps(document), encoding="utf-8")
    path = folder / "instance.json"
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def test_a_training_calibration_is_read(tmp_path: Path) -> None:
    document = calibrate_training("".join(packaged_text().splitlines(keepends=True)[:3])).document
    value = samples.changed({"workload/calibration": "own.json"}, samples.training())
    path = written(tmp_path, document, value)
    instance = api.resolved(api.load(path), path)
    held = instance.workload.calibration_document()
    assert held == document
    assert calibration_with(held).factors == calibration_with(document).factors


@pytest.mark.parametrize("document", [{"factors": {}}, [], {"kind": "training"}])
def test_anything_else_is_refused(document: object, tmp_path: Path) -> None:
    value = samples.changed({"workload/calibration": "own.json"}, samples.training())
    path = written(tmp_path, document, value)
    with pytest.raises(InputError, match="E-WORKLOAD-009"):
        api.resolved(api.load(path), path)
    serving = samples.changed({"workload/calibration": "own.json"})
    text = written(tmp_path, {"kind": "training", "factors": {"hopper_matrix_16bit": 0.7}, "effects": {}}, serving)
    with pytest.raises(InputError, match="E-WORKLOAD-009"):
        api.resolved(api.load(text), text)
