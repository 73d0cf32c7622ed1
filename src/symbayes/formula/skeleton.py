"""The structure of a term, without its constants: two draws with equal skeletons are one formula.

What the coefficient of the term or another constant absorbs is left out: a sign or a linear
transform around the term, and a transform of a transform. Operands of sums and products are sorted.
"""

from __future__ import annotations

import numpy as np

from ..kernels import opcodes
from .operators import BY_OPCODE


def skeleton(nodes: np.ndarray) -> str:
    """Return the skeleton of a tree given as nodes in preorder.

    Examples
    --------
    >>> import numpy as np
    >>> from symbayes.kernels import opcodes
    >>> from symbayes.kernels.tree import NODE
    >>> tree = np.zeros(4, NODE)
    >>> tree["op"] = [opcodes.LT, opcodes.SIN, opcodes.LT, opcodes.FEATURE]
    >>> skeleton(tree)
    'sin(lt(x0))'
    """
    operands: list[tuple[str, str]] = []  # operator on top, and the text
    for node in nodes[::-1]:
        op = int(node["op"])
        if op == opcodes.FEATURE:
            operands.append(("", f"x{node['feature']}"))
            continue
        name = BY_OPCODE[op].name
        inner = [operands.pop() for _ in range(BY_OPCODE[op].arity)]
        if name == "lt" and inner[0][0] == "lt":
            operands.append(inner[0])
            continue
        texts = [text for _, text in inner]
        if name in ("+", "*"):
            texts.sort()
        operands.append((name, f"{name}({','.join(texts)})"))
    top, text = operands.pop()
    while top in ("lt", "neg"):
        text = text[len(top) + 1 : -1]
        top = next((name for name in ("lt", "neg") if text.startswith(f"{name}(")), "")
    return text
