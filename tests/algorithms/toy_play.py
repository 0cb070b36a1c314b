"""Exhaustive play of a chooser on tic-tac-toe against every reply."""

import jax
import jax.numpy as jnp
import numpy as np

_ROWS = 128  # every call has this many rows: one compilation


def losing_lines(game, choose, seat):
    """How many games `choose` loses from `seat` when the rival tries every legal move.

    choose: `(states[B]) -> int array [B]`, jitted; B is always the same.
    """
    step = jax.jit(jax.vmap(game.step, (0, 0, None)))
    key = jax.random.key(0)
    states = jax.tree.map(lambda x: x[None], game.init(key))
    lost = 0
    while len(states.current_player):
        mover = int(states.current_player[0])  # all lines have the same length
        if mover == seat:
            parents = np.arange(len(states.current_player))
            actions = np.concatenate(
                [np.asarray(choose(part))[:n] for part, n in _parts(states)]
            ).astype(np.int32)
        else:
            parents, actions = (x.astype(np.int32) for x in np.nonzero(states.legal_action_mask))
        before = jax.tree.map(lambda x, p=parents: x[p], states)
        done = []
        for (part, n), (acts, _) in zip(_parts(before), _parts(actions), strict=True):
            after = step(part, acts, key)
            done.append(jax.tree.map(lambda x, n=n: np.asarray(x)[:n], after))
        after = jax.tree.map(lambda *xs: np.concatenate(xs), *done)
        lost += int((after.rewards[:, seat] < 0).sum())
        going = np.flatnonzero(~after.done)
        # The same position by another order of moves is one position.
        boards = np.asarray(after.cells)[going].reshape(len(going), game.num_actions)
        _, first = np.unique(boards, axis=0, return_index=True)
        states = jax.tree.map(lambda x, keep=going[first]: x[keep], after)
    return lost


def _parts(tree):
    """Slices of `_ROWS` rows, the last one filled up, with the number of true rows."""
    total = len(jax.tree.leaves(tree)[0])
    for begin in range(0, total, _ROWS):
        rows = np.minimum(np.arange(begin, begin + _ROWS), total - 1)
        yield jax.tree.map(lambda x, r=rows: jnp.asarray(x)[r], tree), min(_ROWS, total - begin)
