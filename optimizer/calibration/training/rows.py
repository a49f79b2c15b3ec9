"""Measured training steps: read from a table, named in the catalogue's words, ready to be predicted.

A cell that is empty gets a stated default (``TrainingRow.assumed``); what cannot be predicted says why (``problem``).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from optimizer.catalog import Catalog, UnknownName
from optimizer.performance.training.flops import flop_per_token
from optimizer.performance.training.hardware import TrainingAccelerator, precision_of
from optimizer.performance.training.model import TrainingModel
from optimizer.performance.training.stacks import StackTraits, stack_traits

#: Columns by which a table is known to hold training steps: serving tables have neither.
MARKS: Final = ("global_batch", "seq_len")
_SEQUENCE: Final = 4096
_ACCELERATORS: Final = 256
_SEQUENCES_EACH: Final = 16
_NAN: Final = float("nan")
_TERA: Final = 1e12
_RECOMPUTE: Final = {"none": 0, "no": 0, "selective": 1, "full": 2, "selective-ops": 3, "operators": 3}
_YES: Final = {"yes": 1, "no": 0, "true": 1, "false": 0, "1": 1, "0": 0}


@dataclass(frozen=True, slots=True)
class TrainingRow:
    """One row. Degrees of 0 were not stated; ``recompute`` -1 was not. Measured figures are NaN where there are none.

    ``convention`` is the FLOP convention of the source, in the names of ``CONVENTIONS``; ``step_s`` is the measured
    step, from the rate in tokens or in FLOP where only that is stated.
    """

    id: str
    stack: str
    traits: StackTraits
    label: str
    model: TrainingModel | None
    accelerator: TrainingAccelerator | None
    accelerator_name: str
    precision: str
    accelerators: int
    sequence: int
    sequences: float
    tensor: int
    pipeline: int
    virtual: int
    data: int
    context: int
    expert: int
    zero: int
    recompute: int
    micro_batch: int
    sequence_parallel: int
    token_drop: bool
    convention: str
    step_s: float
    assumed: tuple[str, ...]
    problem: str

    @property
    def is_dense(self) -> bool:
        """No routed experts."""
        return self.model is None or self.model.is_dense

    @property
    def kind(self) -> str:
        """``dense`` or ``moe``."""
        return "dense" if self.is_dense else "moe"


def convention_of(text: str) -> str:
    """The FLOP convention that a source's words describe; unknown words mean model FLOP with full attention.

    NVIDIA's recipes, LLM Foundry and MLPerf's logs count attention in full; Megatron-Bridge counts causal pairs, and
    its mixtures too (``forced balanced routing``); papers of 2021-22 count the recomputed forward pass.
    """
    low = text.lower()
    if "hardware" in low:
        return "hardware_full"
    if "causal" in low or "balanced routing" in low:
        return "causal"
    if "8nd" in low:
        return "8nd"
    if "6nd" in low or "of the report" in low or "of the paper" in low:
        return "6nd"
    return "full"


class _Cells:
    """Cells of a row as numbers, faults collected."""

    def __init__(self, row: Mapping[str, str]) -> None:
        self.row = row
        self.faults: list[str] = []

    def text(self, *names: str) -> str:
        return next((found for name in names if (found := (self.row.get(name) or "").strip())), "")

    def number(self, name: str, default: float, *, least: float = 0.0) -> float:
        cell = self.text(name)
        if not cell:
            return default
        try:
            value = float(cell)
        except ValueError:
            value = _NAN
        if not least <= value < float("inf"):
            self.faults.append(f"{name} {cell!r} is no number of at least {least:g}")
            return default
        return value

    def count(self, name: str) -> int:
        """A whole degree, 0 where it is not stated."""
        value = self.number(name, 0.0)
        if value != int(value):
            self.faults.append(f"{name} must be whole, found {value:g}")
            return 0
        return int(value)


def read_row(row: Mapping[str, str], catalog: Catalog, index: int = 0) -> TrainingRow:
    """One row of a table; never raises: what is wrong with it stands in ``problem``."""
    from optimizer.calibration.training.names import resolve_accelerator

    cells = _Cells(row)
    assumed: list[str] = []
    name = cells.text("gpu", "accelerator")
    accelerator: TrainingAccelerator | None = None
    if not name:
        cells.faults.append("gpu must be stated")
    else:
        try:
            accelerator = resolve_accelerator(catalog, name)
        except UnknownName as error:
            cells.faults.append(str(error))
    label = cells.text("model")
    model = _model(cells, catalog, label, assumed)
    precision = cells.text("precision") or "bf16"
    try:
        form = precision_of(precision)
        if accelerator is not None and accelerator.peak_tflops(form) <= 0:
            cells.faults.append(f"{accelerator.id} has no matrix units for {precision}")
    except ValueError as error:
        cells.faults.append(str(error))
    stack = cells.text("stack")
    tensor, pipeline, data = cells.count("tp"), cells.count("pp"), cells.count("dp")
    context = cells.count("cp") or (1 if tensor or not cells.text("cp") else 0) or 1
    accelerators = cells.count("gpus")
    if not accelerators and tensor and pipeline and data:
        accelerators = tensor * pipeline * data * context
    if not accelerators:
        accelerators = _ACCELERATORS
        assumed.append(f"gpus not stated: {accelerators}")
    sequence = int(cells.number("seq_len", 0.0)) or _SEQUENCE
    if not cells.text("seq_len"):
        assumed.append(f"seq_len not stated: {sequence}")
    sequences = cells.number("global_batch", 0.0)
    if sequences < 1:
        sequences = float(_SEQUENCES_EACH * accelerators)
        assumed.append(f"global_batch not stated: {sequences:.0f} sequences")
    zero_text = cells.text("zero").upper()
    zero = 3 if "FSDP" in zero_text else int(zero_text[-1]) if zero_text[-1:].isdigit() else -1
    recompute = _RECOMPUTE.get(cells.text("recompute").lower(), -1)
    parallel = _YES.get(cells.text("seq_parallel", "sequence_parallel").lower(), -1)
    convention = convention_of(cells.text("flops_convention"))
    generation = accelerator.generation if accelerator is not None else ""
    step = _measured(cells, model, accelerators, sequence, sequences, convention)
    return TrainingRow(
        id=cells.text("row_id", "id") or str(index + 1),
        stack=stack,
        traits=stack_traits(stack, generation),
        label=label,
        model=model,
        accelerator=accelerator,
        accelerator_name=name,
        precision=precision,
        accelerators=accelerators,
        sequence=sequence,
        sequences=sequences,
        tensor=tensor,
        pipeline=pipeline,
        virtual=cells.count("vpp"),
        data=data,
        context=context,
        expert=cells.count("ep"),
        zero=zero,
        recompute=recompute,
        micro_batch=cells.count("micro_batch"),
        sequence_parallel=parallel,
        token_drop="tokendrop" in label.lower().replace(" ", "").replace("-", ""),
        convention=convention,
        step_s=step,
        assumed=tuple(assumed),
        problem="; ".join(cells.faults),
    )


def _model(cells: _Cells, catalog: Catalog, label: str, assumed: list[str]) -> TrainingModel | None:
    from optimizer.calibration.training.names import resolve_model

    layers, hidden, heads = cells.count("layers"), cells.count("hidden"), cells.count("heads")
    ffn, vocabulary = cells.count("ffn"), cells.count("vocab")
    parameters = cells.number("params_b", 0.0) * 1e9
    active = cells.number("active_params_b", 0.0) * 1e9
    if layers and hidden and heads and ffn and vocabulary and not active:
        found = [
            TrainingModel.from_shape(
                layers=layers,
                hidden_size=hidden,
                attention_heads=heads,
                kv_heads=cells.count("kv_heads") or heads,
                ffn_size=ffn,
                mlp_matrices=cells.count("ffn_mats") or 3,
                vocabulary=vocabulary,
                tied_embeddings=tied,
                name=label,
            )
            for tied in (False, True)
        ]
        # Tables do not say whether embeddings are tied; their parameter count does.
        return min(found, key=lambda one: abs(one.parameters - parameters)) if parameters else found[0]
    known = resolve_model(catalog, label) if label else None
    if known is not None:
        return known
    if parameters <= 0:
        cells.faults.append(f"model {label!r} is not known and params_b is not stated")
        return None
    assumed.append("shape not stated: the usual one of that size")
    try:
        return TrainingModel.from_parameters(parameters, active or None)
    except ValueError as error:
        cells.faults.append(str(error))
        return None


def _measured(
    cells: _Cells, model: TrainingModel | None, accelerators: int, sequence: int, sequences: float, convention: str
) -> float:
    """The measured step in s: stated, or from tokens/s, or from FLOP/s; NaN where nothing was measured."""
    step = cells.number("step_s", _NAN)
    if step > 0:
        return step
    rate = cells.number("tokens_s_per_gpu", _NAN)
    if rate > 0:
        return sequences * sequence / (rate * accelerators)
    tflops = cells.number("tflops_per_gpu", _NAN)
    if tflops > 0 and model is not None and cells.text("gpus") and cells.text("global_batch"):
        return sequences * sequence * flop_per_token(model, sequence, convention) / (tflops * _TERA * accelerators)
    return _NAN


def is_training_table(columns: list[str]) -> bool:
    """Whether a table's columns are those of training steps."""
    return all(name in columns for name in MARKS)
