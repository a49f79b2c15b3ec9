"""Reading: sound files become instances, bad ones give every fault at once in words and with places."""

import json
import os
from pathlib import Path

import pytest

from optimizer.errors import CODES, InputError, Problem
from optimizer.instance import Instance
from optimizer.instance.checking import MAX_FOUND
from optimizer.instance.reading import MAX_BYTES, read_instance, read_instance_text, resolve_model_path
from tests.instance.corpus import FILES, TEXTS, spoilt
from tests.instance.samples import changed, problems, read, several_classes, sound, training

GOLDEN = Path(__file__).parent / "messages.txt"

#: Codes that are not about reading, and those that need a file system to be ill.
ELSEWHERE = {
    "E-FILE-002",
    "E-FILE-003",
    "E-FILE-004",
    "E-FILE-005",
    "E-INSTANCE-020",
    "E-TABLE-001",
    "E-WORKLOAD-032",
    "E-OUTPUT-001",
    "E-OUTPUT-002",
    # What drawing scenarios finds: tests/studies.
    "E-UNCERTAINTY-407",
    "E-UNCERTAINTY-408",
    "E-UNCERTAINTY-409",
    # What a proposal that is evaluated says, and what sweeps and other studies are asked: tests/studies.
    *(code for code in CODES if code.startswith(("E-STUDY-", "E-WHYNOT-"))),
    *(code for code in CODES if code.startswith("E-PROPOSAL-")),
    *(code for code in CODES if code.startswith("E-SWEEP-")),
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with the files that instances of the corpus name."""
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def corpus(folder: Path) -> dict[str, tuple[Problem, ...]]:
    """Problems of every bad input."""
    texts = {**{name: json.dumps(value, indent=2) for name, value in spoilt().items()}, **TEXTS}
    return {name: problems(text) for name, text in texts.items()}


def test_sound_instances_are_read() -> None:
    instance = read(sound())
    assert isinstance(instance, Instance)
    assert instance.targets.tpot_ms == 50.0
    assert instance.own_rows().purchase_prices[0].typical_usd == 2.0
    assert len(read(several_classes()).workload.all_classes()) == 2
    assert [job.name for job in read(training()).workload.all_jobs()] == ["main", "next"]  # type: ignore[union-attr]


def test_the_smallest_instance_has_ten_lines() -> None:
    text = """{
      "name": "small",
      "workload": {
        "model": "Llama-3.1-8B",
        "request": { "input_tokens": 1000, "output_tokens": 200 },
        "demand": { "requests_per_s": 1 }
      }
    }"""
    assert text.count("\n") < 10
    assert read_instance_text(text, "my.json").name == "small"


def test_messages_are_those_of_the_golden_file(folder: Path, update_goldens: bool) -> None:
    parts = [f"== {name}\n" + "".join(f"{one}\n" for one in found) for name, found in corpus(folder).items()]
    text = "\n".join(parts)
    if update_goldens:
        GOLDEN.write_text(text, encoding="utf-8")
    assert text == GOLDEN.read_text(encoding="utf-8")


def test_every_bad_input_is_refused_and_placed(folder: Path) -> None:
    for name, found in corpus(folder).items():
        assert found, name
        for one in found:
            assert one.code in CODES
            assert one.line or one.code in ("E-FILE-006",), (name, one)
            assert str(one).isprintable()


def test_every_code_of_reading_occurs(folder: Path) -> None:
    seen = {one.code for found in corpus(folder).values() for one in found}
    assert set(CODES) - seen == ELSEWHERE


def test_twelve_faults_give_twelve_lines_in_the_order_of_the_file() -> None:
    value = changed(
        {
            "name": "",
            "workload/model": "Llama-3.1-71B",
            "workload/request/input_tokens": 1000.5,
            "workload/demand/concurrent_users": 5,
            "workload/load/mean_fraction": 2,
            "targets/tpot_ms": "150 ms",
            "targets/latency_ms": 900,
            "choices/accelerators/1": "l40x",
            "choices/tensor_parallel": [],
            "site/power_kw": -5,
            "economics/discount_rate": 8,
            "solver/gapp": 1,
        }
    )
    found = problems(json.dumps(value, indent=2))
    assert len(found) == 12
    assert [(one.line, one.column) for one in found] == sorted((one.line, one.column) for one in found)
    with pytest.raises(InputError) as caught:
        read(value)
    assert len(str(caught.value).splitlines()) == 12
    assert caught.value.exit_code == 3


def test_the_form_of_a_line() -> None:
    (one,) = problems(json.dumps(changed({"targets/tpot_ms": -5}), indent=2))
    assert str(one) == "error[E-TARGETS-003] my.json:19:16 targets.tpot_ms: found -5; must be > 0 ms"


@pytest.mark.parametrize("value", [None, True, "x", [], {}, 1.5, -1, [None], {"a": None}])
def test_a_fault_in_a_union_is_told_once(value: object) -> None:
    for path in ("targets/tpot_ms", "workload/model", "catalog", "choices/accelerators", "workload/request"):
        found = problems(json.dumps(changed({path: value})))
        at = [one for one in found if one.field == path.replace("/", ".")]
        assert len(at) <= 1


def test_faults_beyond_all_measure_are_cut() -> None:
    value = changed({"choices/tensor_parallel": ["x"] * 5000})
    assert len(problems(json.dumps(value))) == MAX_FOUND


class TestFiles:
    """What can be wrong with a file as such."""

    def refused(self, path: Path) -> Problem:
        with pytest.raises(InputError) as caught:
            read_instance(path)
        (one,) = caught.value.problems
        assert one.code in CODES
        return one

    def test_missing(self, tmp_path: Path) -> None:
        (tmp_path / "service.json").write_text("{}")
        one = self.refused(tmp_path / "servcie.json")
        assert one.code == "E-FILE-001"
        assert "service.json?" in one.fix

    def test_missing_folder(self, tmp_path: Path) -> None:
        assert self.refused(tmp_path / "a" / "b.json").code == "E-FILE-001"

    def test_folder_is_a_file(self, tmp_path: Path) -> None:
        (tmp_path / "a").write_text("{}")
        assert self.refused(tmp_path / "a" / "b.json").code == "E-FILE-001"

    def test_name_too_long(self, tmp_path: Path) -> None:
        assert self.refused(tmp_path / ("x" * 5000)).code in ("E-FILE-001", "E-FILE-003")

    def test_name_with_a_null(self, tmp_path: Path) -> None:
        assert self.refused(Path(f"{tmp_path}/a\0b")).code in ("E-FILE-001", "E-FILE-003")

    def test_directory(self, tmp_path: Path) -> None:
        assert self.refused(tmp_path).code == "E-FILE-002"

    @pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes on this system")
    def test_named_pipe(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "pipe")
        assert self.refused(tmp_path / "pipe").code == "E-FILE-002"

    def test_unreadable(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = tmp_path / "a.json"
        path.write_text("{}")

        def denied(*_args: object, **_more: object) -> None:
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr(Path, "open", denied)
        assert self.refused(path).code == "E-FILE-003"

    def test_too_large(self, tmp_path: Path) -> None:
        path = tmp_path / "a.json"
        path.write_bytes(b"x" * (10 * 2**20))
        one = self.refused(path)
        assert one.code == "E-FILE-004"
        assert f"{MAX_BYTES:,}" in one.allowed

    def test_not_utf8(self, tmp_path: Path) -> None:
        path = tmp_path / "a.json"
        path.write_bytes('{\n "name": "\u00e9'.encode() + b'\xff"}')
        one = self.refused(path)
        assert (one.code, one.line, one.column) == ("E-FILE-005", 2, 12)

    def test_utf16(self, tmp_path: Path) -> None:
        path = tmp_path / "a.json"
        path.write_text("{}", encoding="utf-16")
        assert self.refused(path).code == "E-FILE-005"

    def test_byte_order_mark_is_accepted(self, tmp_path: Path) -> None:
        path = tmp_path / "a.json"
        path.write_text(json.dumps(sound()), encoding="utf-8-sig")
        assert read_instance(path).name == "sample"

    def test_message_repeats_no_control_characters(self, tmp_path: Path) -> None:
        assert "\x1b" not in str(self.refused(tmp_path / "\x1b[31m.json"))


class TestPathsInside:
    """Paths inside an instance are relative to the instance file."""

    def test_own_rows_in_a_file(self, tmp_path: Path) -> None:
        (tmp_path / "rows.json").write_text(json.dumps(sound()["catalog"]))
        path = tmp_path / "a.json"
        path.write_text(json.dumps(changed({"catalog": "rows.json"})))
        assert read_instance(path).own_rows().purchase_prices[0].typical_usd == 2.0

    def test_faults_of_the_file_carry_its_name(self, tmp_path: Path) -> None:
        (tmp_path / "rows.json").write_text('{"purchase_prices": [\n{"accelerator": "l40s", "low_usd": -1}]}')
        (tmp_path / "a.json").write_text(json.dumps(changed({"catalog": "rows.json", "site/power_kw": -1})))
        with pytest.raises(InputError) as caught:
            read_instance(tmp_path / "a.json")
        names = [Path(one.file).name for one in caught.value.problems]
        assert names[0] == "a.json"
        assert set(names[1:]) == {"rows.json"}
        assert any(one.code == "E-CATALOG-003" and one.line == 2 for one in caught.value.problems)

    def test_a_row_of_the_file_that_contradicts_itself(self, tmp_path: Path) -> None:
        rows = changed({"catalog/purchase_prices/0/low_usd": 9})["catalog"]
        (tmp_path / "rows.json").write_text(json.dumps(rows))
        found = problems(json.dumps(changed({"catalog": "rows.json"})), tmp_path)
        assert [(one.code, Path(one.file).name) for one in found] == [("E-CATALOG-009", "rows.json")]

    def test_rows_of_the_file_are_known_to_the_instance(self, tmp_path: Path) -> None:
        accelerator = {
            "id": "my-card",
            "generation": "ada",
            "memory_gib": 48,
            "memory_bandwidth_gb_s": 900,
            "fp16_tflops": 300,
            "scale_up_domain": 1,
            "scale_out_gb_s": 12,
            "pcie_gb_s": 32,
            "tdp_w": 300,
            "accelerators_per_server": 4,
            "accelerators_per_host": 4,
            "server_power_kw": 2,
            "server_rack_units": 2,
        }
        (tmp_path / "rows.json").write_text(json.dumps({"accelerators": [accelerator]}))
        price = {"economics/prices": {"my-card": {"server_usd": 1}}, "choices/supply": ...}
        value = changed({"catalog": "rows.json", "choices/accelerators": ["my-card"], **price})
        assert problems(json.dumps(value), tmp_path) == ()
        assert [one.code for one in problems(json.dumps(changed({"choices/accelerators": ["my-card"]})))] == [
            "E-CHOICES-007"
        ]

    def test_model_path(self, tmp_path: Path) -> None:
        (tmp_path / "m").mkdir()
        (tmp_path / "m" / "config.json").write_text("{}")
        for written in ("m/config.json", "./m"):
            instance = read(changed({"workload/model": written}), tmp_path)
            assert resolve_model_path(instance, tmp_path) == tmp_path / "m" / "config.json"
        assert resolve_model_path(read(sound()), tmp_path) is None

    @pytest.mark.parametrize("name", ["meta-llama/Llama-3.1-70B-Instruct", "llama-3.1-70b", "Llama 3.1 70B"])
    def test_aliases_are_accepted(self, name: str) -> None:
        assert read(changed({"workload/model": name})).workload.model == name


def test_what_only_the_shapes_refuse_is_still_an_input_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """The checker and the shapes agree; were they ever to differ, a planner still gets a placed message."""
    from optimizer.instance import checking

    monkeypatch.setattr(checking.Checker, "check", lambda *_: ())
    found = problems(json.dumps(changed({"targets/tpot_ms": -5}), indent=2))
    assert [(one.code, one.line, one.field) for one in found] == [("E-INSTANCE-020", 19, "targets.tpot_ms")]


def test_a_model_path_of_an_unknown_user_is_a_missing_file(tmp_path: Path) -> None:
    """``~nobody-here`` names no home: the path is reported, not a traceback."""
    text = json.dumps(
        {
            "name": "x",
            "workload": {
                "model": "~no-such-user-here",
                "request": {"input_tokens": 1, "output_tokens": 1},
                "demand": {"requests_per_s": 1},
            },
        }
    )
    with pytest.raises(InputError) as caught:
        read_instance_text(text, "my.json", tmp_path)
    assert "workload.model" in str(caught.value)
