"""Solve shipped instances again, keep their answers and write the tables of the README anew.

python -m tests.instances.refresh            every instance
python -m tests.instances.refresh small-8b   some of them; the README takes the others from what is kept
"""

import sys
import time

from tests.instances import library, readme


def main(arguments: list[str]) -> int:
    """Refresh; 1 when an instance gave neither a plan nor a diagnosis."""
    failed = False
    for name in arguments or library.names():
        began = time.perf_counter()
        try:
            changed = library.keep(name)
        except Exception as error:  # noqa: BLE001  one instance that fails must not hide the others
            failed = True
            print(f"{name}: {type(error).__name__}: {error}")  # noqa: T201
            continue
        word = "changed" if changed else "as before"
        print(f"{name}: {word}, {time.perf_counter() - began:.1f} s", flush=True)  # noqa: T201
    library.keep_evaluations()
    if not arguments:
        for path in library.EXPECTED.glob("*.json"):
            if path.stem not in library.names():
                path.unlink()
    if missing := readme.missing():
        print(f"README left as it is: no answer is kept of {', '.join(missing)}")  # noqa: T201
        return 1
    readme.write()
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
