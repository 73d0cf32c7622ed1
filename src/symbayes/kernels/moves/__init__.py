"""The moves: one file for each move and its reverse, and one contract.

    propose(rng, trees, k, prior, scratch) -> log ratio

A move reads the k-th term of `trees` (a move between terms picks its terms itself). It writes new
trees into the spare slots, the last two entries of `trees.slots`, the first of them into the very
last, and puts them into the order of terms by `tree.swap`, which notes every swap, so that `step`
can undo a rejected proposal. It returns the logarithm of

    prior(new) x probability of choosing and proposing the way back
    ---------------------------------------------------------------
    prior(old) x probability of choosing and proposing the way there

Minus infinity says that there is nothing to propose; then the order of terms is as it was. New
constants of `lt` are drawn from their prior, which cancels. A move allocates nothing, raises
nothing, and never looks at data, with one exception: Newton proposes from a local fit, so it takes
the data and the mode as well, and returns the residual sum of squares of its proposal too.

What moves on one tree have in common is done in `propose.py`: the factor for choosing the move and
its reverse (`choice.py`), and the swap that puts the new tree in the place of the k-th term.

| file | moves | on |
| --- | --- | --- |
| `grow_prune.py` | a terminal becomes a subtree, or a subtree a terminal | one tree |
| `insert_delete.py` | an operator is inserted above a node, or deleted | one tree |
| `reassign.py` | an operator is redrawn; a terminal reads another column | one tree |
| `stay.py` | constants of one `lt` node walk | one tree |
| `newton.py` | constants of one `lt` node from a normal law fitted to the data | one tree |
| `birth_death.py` | a term is added or dropped | all terms |
| `split_merge.py` | a sum becomes two terms, or two terms one sum | all terms |
| `exchange.py` | subtrees of two terms change places | all terms |
"""
