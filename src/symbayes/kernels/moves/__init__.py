"""The moves. Each file is one move with one contract.

    propose(rng, nodes, old, new, limit, prior, pending) -> log ratio

It reads the tree in the slot at `old`, writes a proposed tree into the slot at `new` (which ends
at `limit`), and returns the logarithm of

    prior(new) x probability of proposing the way back
    --------------------------------------------------
    prior(old) x probability of proposing the way there

for the structure, given that this move was chosen; minus infinity says that there is nothing to
propose. It never looks at data. It lacks the probabilities of choosing the move and its reverse
(`choose.py`), and the constants of `lt`: new ones are drawn from their prior, which cancels.
"""
