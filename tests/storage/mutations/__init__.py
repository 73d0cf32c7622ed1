"""Saved files that were damaged, altered or made to do harm, for whatever loads files."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator

from . import content, raw, zipped

Mutation = Callable[[random.Random, bytes], bytes]


def _by_name(*functions: Mutation) -> dict[str, Mutation]:
    return {function.__name__: function for function in functions}


#: To load one of these gives an error, or the original content.
PLAIN = _by_name(
    raw.flip_bits, raw.overwrite, raw.truncate, raw.insert, raw.delete, raw.swap, raw.repeat,
    zipped.field, zipped.directory, zipped.members, zipped.compressed, zipped.bomb, zipped.crowd,
    content.head_values, content.array_bytes,
)  # fmt: skip
#: The checksums of these fit, so that they may give other content as well.
FORGED = _by_name(content.forged_values, content.forged_text, content.forged_arrays)


def mutations(original: bytes, n: int, seed: int) -> Iterator[bytes]:
    """Yield `n` altered versions of a saved file."""
    for _, data in labelled_mutations(original, n, seed):
        yield data


def labelled_mutations(original: bytes, n: int, seed: int) -> Iterator[tuple[str, bytes]]:
    """Yield the name of each mutation as well; all of them take turns."""
    turns = itertools.cycle((PLAIN | FORGED).items())
    for i, (name, mutation) in enumerate(itertools.islice(turns, n)):
        # A stream of its own, so that one that failed can be made again alone.
        yield name, mutation(random.Random(f"{seed} {i}"), original)
