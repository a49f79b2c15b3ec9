"""Whether the paths of uncertain fields name numbers of the instance."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from optimizer.instance.checking import Found
from optimizer.instance.field_paths import UnknownFieldError, find_field
from optimizer.instance.problems import shown

if TYPE_CHECKING:
    from optimizer.instance.model import Instance

#: Sections that no plan depends on.
_APART: Final = ("uncertainty", "solver")


def bad_paths(instance: "Instance") -> Iterator[Found]:
    """Every uncertain field that no instance has, or that is no number a plan depends on."""
    for place, law in enumerate(instance.uncertainty.fields if instance.uncertainty else ()):
        where = ("uncertainty", "fields", place, "field")
        try:
            field = find_field(instance, law.field)
        except UnknownFieldError as error:
            yield Found("E-UNCERTAINTY-406", where, shown(law.field), error.allowed, error.fix)
            continue
        if not field.is_number or field.steps[0] in _APART:
            yield Found("E-UNCERTAINTY-406", where, shown(law.field), "must be a number that a plan depends on")
