"""A ladder that has travelled goes on as one that has stayed, bit for bit."""

import pickle

import numpy as np
import pytest

from symbayes import PaperSampler, TemperedSampler
from symbayes.formula.operators import OPERATORS
from symbayes.inputs.prior import NoisePrior, TermsPrior, TreePrior
from symbayes.kernels.chain import RSS, Chain
from symbayes.kernels.tree_prior import Prior
from symbayes.samplers.catalogue import StateList
from symbayes.samplers.ladder import DERIVED, LEARNED, Replicas, Round
from symbayes.samplers.paper import PaperChain, Trees
from symbayes.samplers.run.scheduler import Scheduler, carry_out
from symbayes.samplers.sampling import state_like
from symbayes.samplers.search.library import LibraryCache
from symbayes.samplers.trace import ChainTrace

from ..problems import problem, table, tree

EVERY = dict.fromkeys(OPERATORS, 1.0)
POWERS = np.geomspace(1.0, 0.05, 5)
WEIGHTS = np.random.default_rng(3).integers(0, 4, 90)


def plain(**options):
    return problem(table(80, 3), EVERY, TermsPrior(4, 0.7), TreePrior(), NoisePrior(), **options)


def weighted():
    return problem(
        table(90, 2, weights=WEIGHTS), EVERY, TermsPrior(3, 0.7), TreePrior(max_nodes=15),
        NoisePrior(), learn=True,
    )  # fmt: skip


def listing(made):
    """The problem with a list of what a ladder has visited."""
    ladder = Replicas(made, np.random.SeedSequence(8), POWERS)
    ladder.run(15, 1, 60, every=True)
    met = StateList(made)
    met.add(ladder.visited(60))
    listed = met.make(POWERS, lambda: False)
    assert len(listed.catalogue.key) > 50
    return listed


CASES = {
    "plain": plain,
    "learned": lambda: plain(learn=True),
    "known terms": lambda: plain(known=(tree("*", 0, 1), tree("sin", 2))),
    "weights": weighted,
    "limits": lambda: problem(
        table(60, 2), EVERY, 2, TreePrior(max_depth=3, nesting={"sin": {"sin": 0}}), NoisePrior()
    ),
    "two stages": lambda: plain().in_two_stages(np.arange(0, 80, 3)),
    "teleports": lambda: listing(plain(learn=True)),
    "teleports in two stages": lambda: listing(plain().in_two_stages(np.arange(0, 80, 3))),
}


def travelled(ladder):
    """Send a ladder to another place: its state, packed and unpacked, in a ladder of its own."""
    state = pickle.loads(pickle.dumps(ladder.state()))
    there = type(ladder).blank(ladder.problem, state)
    there.restore(state)
    return there


def assert_equal(first, second):
    one, two = first.state(), second.state()
    assert one.share == two.share
    assert one.met.content() == two.met.content()
    np.testing.assert_array_equal(one.nodes, two.nodes)
    for part in ("chains", "priors", "own"):
        for name, array in getattr(one, part).items():
            np.testing.assert_array_equal(array, getattr(two, part)[name], err_msg=name)


def in_use(ladder, replica):
    """What follows from the trees of a replica, without the slots that hold nothing."""
    chain = Chain(*(array[replica] for array in ladder.chains))
    slots = chain.slots[: max(0, int(chain.n_terms[0]))]
    n = len(chain.slots)
    return (
        chain.columns.reshape(n, -1)[slots],
        chain.gram.reshape(n, n)[np.ix_(slots, slots)],
        chain.dots[slots],
    )


@pytest.mark.parametrize("share", [0.0, 0.3])
@pytest.mark.parametrize("case", CASES)
def test_a_ladder_that_has_travelled(case, share):
    made = CASES[case]()
    for seed in range(6):
        stays = Replicas(made, np.random.SeedSequence(seed), POWERS)
        stays.optimise(share)
        for _ in range(4):
            stays.run(15, 2, 3)
            travels = travelled(stays)
            assert_equal(stays, travels)
            travels._make_columns()
            for replica in range(len(POWERS)):
                for mine, its in zip(in_use(stays, replica), in_use(travels, replica), strict=True):
                    np.testing.assert_array_equal(mine, its)
        for ladder in (stays, travels):
            ladder.run(15, 2, 30)
        assert_equal(stays, travels)
        home = Replicas(made, np.random.SeedSequence(99), POWERS)
        order = Round(15, 30, keep=True)
        home.receive_draws(order, 30, travels.packed_draws(order, 30))
        assert_same_draws(draws_of(stays, 30), draws_of(home, 30))


def draws_of(ladder, n):
    trace = ChainTrace()
    trace.extend(ladder.output, n)
    return trace


def assert_same_draws(one, two):
    assert one.n_terms == two.n_terms
    np.testing.assert_array_equal(one.numbers, two.numbers)
    for mine, its in zip(one.nodes, two.nodes, strict=True):
        np.testing.assert_array_equal(mine, its)


def test_the_states_differ():
    """Else the test above would say little."""
    ladder = Replicas(listing(plain(learn=True)), np.random.SeedSequence(0), POWERS)
    ladder.run(15, 2, 3)
    before = ladder.state()
    ladder.run(15, 2, 30)
    after = ladder.state()
    assert not np.array_equal(before.nodes, after.nodes)
    for part in ("chains", "priors", "own"):
        for name, array in getattr(before, part).items():
            if name != "power":  # which only adapting changes
                assert not np.array_equal(array, getattr(after, part)[name]), name
    assert before.met.content() != after.met.content()


def test_all_of_a_chain_is_sent_or_made_anew():
    ladder = Replicas(plain(), np.random.SeedSequence(0), POWERS)
    state = ladder.state()
    assert {*state.chains, "nodes", *DERIVED} == set(Chain._fields)
    assert set(state.own) == set(ladder.ladder._fields)
    learned = set(LEARNED)
    other = Replicas(plain(), np.random.SeedSequence(1), POWERS)
    for name in set(Prior._fields) - learned:
        np.testing.assert_array_equal(getattr(ladder.priors, name), getattr(other.priors, name))


def test_states_that_are_not_fitted_yet_travel():
    made = plain()
    stays = Replicas(made, np.random.SeedSequence(0), POWERS)
    travels = travelled(stays)  # not even started
    for ladder in (stays, travels):
        ladder.run(10, 1, 5)
    assert_equal(stays, travels)
    stays.put([tree("*", 0, 1), tree(2)])
    travels = travelled(stays)
    for ladder in (stays, travels):
        ladder.run(10, 1, 5)
    assert_equal(stays, travels)


def test_what_is_done_between_rounds_needs_no_columns():
    """Exchange, offers from the library and residuals, on a ladder whose columns are elsewhere."""
    made = plain()
    stays = Replicas(made, np.random.SeedSequence(5), POWERS)
    stays.run(15, 2, 20)
    libraries = LibraryCache()
    travels = travelled(stays)
    np.testing.assert_array_equal(stays.residual(), travels.residual())
    travels = travelled(stays)
    for ladder in (stays, travels):
        ladder.put(ladder.trees()[:1])
        ladder.fit()
    assert_equal(stays, travels)
    travels = travelled(stays)
    for ladder in (stays, travels):
        carry_out(ladder, Round(10, 5, offer=True), libraries)
        ladder.adapt()
        carry_out(ladder, Round(10, 5), libraries)
    assert_equal(stays, travels)


def test_a_chain_of_the_paper_that_has_travelled():
    made = problem(table(70, 2), EVERY, 2, TreePrior(), NoisePrior(1.0, 0.1))
    for seed in range(6):
        stays = PaperChain(made, np.random.SeedSequence(seed))
        n = carry_out(stays, Trees(200, 1000), LibraryCache())
        travels = travelled(stays)
        assert_equal(stays, travels)
        n, m = (carry_out(chain, Trees(300, 1000), LibraryCache()) for chain in (stays, travels))
        assert n == m > 0
        assert_equal(stays, travels)
        kept = pickle.loads(pickle.dumps(travels.packed_draws(Trees(300, 1000), n)))
        receiver = PaperChain(made, np.random.SeedSequence(99))
        receiver.receive_draws(Trees(300, 1000), n, kept)
        for chain in (stays, receiver):
            chain.trace.extend(chain.output, n)
        assert stays.trace.times == receiver.trace.times
        assert_same_draws(stays.trace, receiver.trace)


@pytest.mark.parametrize("n_draws", [0, 1, 8, 9, 64])
def test_a_round_in_parts_is_the_same_round(n_draws):
    made = plain(learn=True)
    whole, parts = (Replicas(made, np.random.SeedSequence(2), POWERS) for _ in range(2))
    for offer in (False, True):
        order = Round(10, n_draws, offer=offer)
        assert carry_out(whole, order, LibraryCache()) == n_draws
        work = parts.carry_out(order, LibraryCache(), in_parts=True)
        stops = sum(1 for _ in work)
        assert (stops > 0) == (n_draws > 8)
        assert_equal(whole, parts)
        for one, other in zip(whole.output, parts.output, strict=True):
            np.testing.assert_array_equal(one[:n_draws], other[:n_draws])


def test_a_round_in_parts_ends_where_the_whole_would():
    made = plain()
    at_the_end_of_a_part = 0
    for seed in range(12):
        first = Replicas(made, np.random.SeedSequence(seed), POWERS)
        first.run(4, 1, 64)
        best = np.minimum.accumulate(first.output[2][:64, RSS])
        for good_enough in np.unique(best):
            end = 1 + int(np.argmax(best <= good_enough))
            for n_draws in {64, min(64, 2 * end)}:
                ladders = [Replicas(made, np.random.SeedSequence(seed), POWERS) for _ in range(2)]
                order = Round(4, n_draws, good_enough)
                scheduler = Scheduler([ladders[1].carry_out(order, LibraryCache(), in_parts=True)])
                scheduler.run()
                assert [carry_out(ladders[0], order, LibraryCache())] == scheduler.results == [end]
                assert_equal(*ladders)
                at_the_end_of_a_part += n_draws == 2 * end >= 16
    assert at_the_end_of_a_part > 3


@pytest.mark.parametrize("in_parts", [False, True])
def test_several_rounds_at_once_are_the_same_rounds(in_parts):
    made = plain(learn=True)
    one, other = (Replicas(made, np.random.SeedSequence(3), POWERS) for _ in range(2))
    for _ in range(3):
        carry_out(one, Round(10, 20, offer=True), LibraryCache())
    work = other.carry_out(Round(10, 20, offer=True, times=3), LibraryCache(), in_parts)
    places, end = [], None
    while end is None:
        try:
            places.append(next(work))
        except StopIteration as ended:
            end = ended.value
    assert end == 60
    # Only the last has to be shared out; wherever it stops it could end.
    assert places == [20, 40, *([50, 58] if in_parts else [])]
    assert_equal(one, other)


def test_several_rounds_end_with_the_first_that_is_good_enough():
    made = plain()
    first = Replicas(made, np.random.SeedSequence(5), POWERS)
    first.run(4, 1, 64)
    lowest = np.minimum.accumulate(first.output[2][:64, RSS])
    where = 1 + int(np.argmax(lowest <= lowest[-1]))
    length = where - 3  # so that it is in the second round
    assert length > 3
    ladder = Replicas(made, np.random.SeedSequence(5), POWERS)
    assert carry_out(ladder, Round(4, length, lowest[-1], times=9), LibraryCache()) == where
    assert ladder.rss == lowest[-1]


@pytest.mark.parametrize("case", CASES)
def test_a_state_has_the_expected_names_types_and_shapes(case):
    made = CASES[case]()
    ladder = Replicas(made, np.random.SeedSequence(0), POWERS)
    ladder.run(5, 1, 2)
    assert_alike(ladder.state(), state_like(TemperedSampler(temperatures=len(POWERS)), made))
    fixed = problem(table(70, 2), EVERY, 2, TreePrior(), NoisePrior(1.0, 0.1))
    chain = PaperChain(fixed, np.random.SeedSequence(0))
    assert_alike(chain.state(), state_like(PaperSampler(), fixed))


def assert_alike(one, two):
    assert one.nodes.dtype == two.nodes.dtype
    for part in ("chains", "priors", "own"):
        mine, its = getattr(one, part), getattr(two, part)
        assert mine.keys() == its.keys()
        for name, array in mine.items():
            assert (array.dtype, array.shape) == (its[name].dtype, its[name].shape), name
