"""The search before the sampling: find good states by any means; none of them has to be exact.

`search.py` runs ladders and decides when to stop; `noise_floor.py` tells it whether anything is
left to explain. Each other file is one way of suggesting states, with one contract:

    suggest(problem, state, stop) -> iterator of states

`problem` has the rows, the response and the operators that may be used. `state` is where the search
is now (`heuristics.State`); ways that look at the data alone ignore it. A state that is suggested
is a list of trees, its terms. Constants in it need not be right, since they are optimised before it
is judged by its posterior: a bad suggestion costs time and nothing else. Ways that may take long
end when `stop` returns true.

| file | suggests | from |
| --- | --- | --- |
| `power_law.py` | products of powers, for y or a transformation of it | the data |
| `rational.py` | a ratio of polynomials of one column | the data |
| `common_factor.py` | a product of powers that y may be divided by | the data |
| `targets.py` | one tree for y | a state found for a transformation of y |
| `library.py`, `pairs.py` | the state with a further term | its residual |
| `equal_parts.py` | the state with a part replaced by a shorter one | the values of its parts |

`heuristics.py` has a switch for each of them, for experiments.
"""
