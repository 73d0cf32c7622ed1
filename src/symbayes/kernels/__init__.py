"""Compiled code: NumPy and Numba only, and nothing of the package above.

Three things are arguments of their own (`chain.py`): the tables (`Tables`), the mode, which decides
what law is sampled (`Mode`), and room to work in, which holds nothing between two steps
(`Scratch`). Kernels allocate nothing, raise nothing, and draw from a generator state that the
caller owns.

| file | what it holds |
| --- | --- |
| `chain.py` | the named tuples that all code below is handed |
| `tree.py`, `opcodes.py` | trees as flat arrays: walking, counting, copying, limits |
| `tree_prior.py` | the prior over trees: drawing them, and what their shape is worth |
| `gibbs.py` | exact updates of what is learned about the prior: weights and scales |
| `rng.py` | random numbers |
| `moves/` | the moves, one contract (`moves/__init__.py`), and which one is chosen |
| `step.py` | one step: propose, evaluate, accept or reject |
| `front.py` | the best state of each size that was met |
| `sensible.py`, `nesting.py` | which terms are sensible functions; the price of nested operators |
| `teleport.py` | a whole state replaced by one of a list |
| `run.py`, `ladder.py` | starts and kept states; the loop of the default sampler |
| `paper.py` | step and loop of the paper's sampler |
| `evaluate.py`, `vector_math.py` | the values of a tree on rows |
| `rows.py` | all other loops over rows |
| `likelihood.py` | columns, least squares and log-likelihoods, by those loops |
| `all_rows.py` | the same on all rows in blocks, for delayed acceptance |
| `optimise.py` | Gauss-Newton steps on constants, for the search only |
| `units.py`, `compiling.py`, `code_cache.py` | what is compiled when, and kept where |

Loops over rows are in `evaluate.py`, `vector_math.py` and `rows.py` and nowhere else. A GPU needs
its own version of these three; trees, moves, prior, step and random numbers are shared.
"""
