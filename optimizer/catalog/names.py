"""Finding the catalogue id that a name means."""

from collections.abc import Iterable, Mapping


class UnknownName(KeyError):  # noqa: N818 - reads as what it says at every raise and except
    """No row of a table goes by a name; ``nearest`` lists the ids that look most like it."""

    def __init__(self, name: str, nearest: tuple[str, ...], kind: str = "name") -> None:
        super().__init__(name)
        self.name = name
        self.nearest = nearest
        self.kind = kind

    def __str__(self) -> str:
        """One sentence; KeyError would print the bare name in quotes."""
        hint = f"; nearest: {', '.join(self.nearest)}" if self.nearest else ""
        return f"unknown {self.kind} {self.name!r}{hint}"


#: Endings of published variants that share the shape and the weights' format of the model they were tuned from.
_TUNED_ENDINGS = ("-instruct", "-chat", "-it", "-thinking")


def folded(name: str) -> str:
    """Spelling that ignores case and the choice between space, underscore and hyphen."""
    return "-".join(name.casefold().replace("_", " ").replace("-", " ").split())


def resolve(name: str, ids: Iterable[str], aliases: Mapping[str, str], kind: str) -> str:
    """Id that ``name`` means.

    Args:
        name: Id or alias in any case; a Hugging Face owner and the ending of a tuned variant may be left on.
        ids: Every id of the table.
        aliases: Folded alias to id.
        kind: Word for messages.

    Raises:
        UnknownName: no id and no alias fits.
    """
    known = dict(aliases)
    known.update((folded(row_id), row_id) for row_id in ids)
    spelled = folded(name)
    for candidate in _spellings(spelled):
        if candidate in known:
            return known[candidate]
    raise UnknownName(name, nearest(name, known), kind)


def _spellings(spelled: str) -> Iterable[str]:
    yield spelled
    bare = spelled.rpartition("/")[2]
    yield bare
    for ending in _TUNED_ENDINGS:
        if bare.endswith(ending):
            yield bare.removesuffix(ending)


def nearest(name: str, known: Mapping[str, str], count: int = 3) -> tuple[str, ...]:
    """The ``count`` ids whose spelling, or an alias of theirs, looks most like ``name``."""
    from difflib import SequenceMatcher  # only an error needs it

    wanted = folded(name).rpartition("/")[2]
    scores: dict[str, float] = {}
    for spelled, row_id in known.items():
        bare = spelled.rpartition("/")[2]
        # A name that begins another is what people type first: "h100" means one of the h100 rows.
        score = SequenceMatcher(None, wanted, bare).ratio() + (0.5 if wanted and bare.startswith(wanted) else 0.0)
        scores[row_id] = max(score, scores.get(row_id, 0.0))
    ranked = sorted(scores, key=lambda row_id: (-scores[row_id], row_id))
    return tuple(row_id for row_id in ranked[:count] if scores[row_id] >= 0.4)
