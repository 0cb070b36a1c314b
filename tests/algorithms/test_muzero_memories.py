"""What the MuZero network looks up: hashed line patterns, and the episodic memory."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from algorithms.networks import muzero
from algorithms.networks.muzero import memory, patterns
from tests.algorithms.test_muzero_network import BATCH, FULL, built, called, jit, seen

# ---- line patterns ----

SEATS, LENGTH, SIZES = 3, 3, (61, 59)


def board_of(code):
    """Planes of codes, with a last plane that says nothing of stones."""
    planes = np.eye(SEATS + 2, dtype=np.int8)[code][..., : SEATS + 1]
    return np.concatenate([planes, np.ones((*code.shape, 1), np.int8)], axis=-1)


def some_codes(seed=0, shape=(2, 5, 6)):
    return np.random.default_rng(seed).integers(0, SEATS + 2, shape)


@functools.cache
def _places(shape):
    return jit(lambda code: patterns.places(code, SEATS, LENGTH, SIZES))


def places(code):
    return np.asarray(_places(code.shape)(jnp.asarray(code)))


def twin(code, row, col, direction, table):
    """One place by the formula, in whole numbers."""
    dr, dc = patterns.DIRECTIONS[direction]
    line = []
    for i in range(-LENGTH + 1, LENGTH):
        r, c = row + i * dr, col + i * dc
        inside = 0 <= r < code.shape[0] and 0 <= c < code.shape[1]
        line.append(int(code[r, c]) if inside else SEATS + 1)
    by = [int(a) for a in patterns.multipliers(len(SIZES), LENGTH)[table]]
    hashes = [sum(t * a for t, a in zip(way, by, strict=True)) % 2**32
              for way in (line, line[::-1])]  # fmt: skip
    return min(hashes) % SIZES[table]


def test_codes():
    code = some_codes()
    assert np.array_equal(patterns.codes(jnp.asarray(board_of(code)), SEATS), code)


def test_places_are_those_of_the_twin():
    code = some_codes()
    found = places(code)
    assert found.shape == (2, 5, 6, 4, 2)
    for b, row, col, d, j in np.ndindex(found.shape):
        assert found[b, row, col, d, j] == twin(code[b], row, col, d, j)


def test_a_mirrored_board_has_the_same_places():
    code = some_codes(1)
    found = places(code)
    across = places(code[:, :, ::-1])[:, :, ::-1]
    assert np.array_equal(across, found[..., [0, 1, 3, 2], :])  # the diagonals change places
    down = places(code[:, ::-1])[:, ::-1]
    assert np.array_equal(down, found[..., [0, 1, 3, 2], :])
    turned = places(code[:, ::-1, ::-1])[:, ::-1, ::-1]
    assert np.array_equal(turned, found)


def test_a_stone_changes_its_lines_only():
    code = some_codes(2, (1, 9, 9))
    other = code.copy()
    other[0, 4, 4] = (code[0, 4, 4] + 1) % 5
    changed = (places(code) != places(other)).any((0, 3, 4))
    row, col = np.abs(np.indices((9, 9)) - 4)
    on_line = ((row == 0) | (col == 0) | (row == col)) & (np.maximum(row, col) < LENGTH)
    assert not np.any(changed & ~on_line)
    assert changed.sum() > 0.8 * on_line.sum()


def test_primes():
    assert patterns.primes(3, 100) == (97, 89, 83)
    assert patterns.primes(2, 4096) == (4093, 4091)
    odd = patterns.multipliers(2, 8)
    assert odd.shape == (2, 15) and np.all(odd % 2 == 1)


def test_patterns_are_the_formula():
    """One token by loops, from the network's own tables."""
    model, params = built()
    c, grid = model.config, model.grid
    w = jax.tree.map(np.asarray, params["patterns"])
    layer = patterns.Patterns(c, grid, SEATS)
    nnx.update(layer, nnx.State(params["patterns"]))
    observation = seen(model)
    reach = (observation["around"].shape[1] - observation["board"].shape[1]) // 2
    h = np.random.default_rng(0).normal(size=(BATCH, grid.patches + 1, c.width))
    got = np.asarray(jit(layer)(jnp.asarray(h, jnp.float32), observation))

    code = observation["around"]
    sizes = patterns.primes(c.pattern_heads, c.pattern_table)
    index = np.asarray(patterns.places(jnp.asarray(code), SEATS, c.line_length, sizes, reach))
    first = [0, sizes[0]]
    e = sum(w["table"][index[..., d, j] + first[j]] for d in range(4) for j in range(2))

    def unit(x):
        return x / np.sqrt(np.mean(np.square(x)) + 1e-6)

    want = h[1, 0].copy()
    for row, col in np.ndindex(3, 3):
        x = unit(h[1, 0]) @ unit(e[1, row, col] @ w["key"]["kernel"]) / math.sqrt(c.width)
        root = np.sign(x) * (np.sqrt(abs(x) + 1e-4) - 1e-2)
        want += e[1, row, col] @ w["value"]["kernel"] / (1 + np.exp(-root))
    np.testing.assert_allclose(got[1, 0], want, atol=1e-4)
    assert np.array_equal(got[:, -1], h[:, -1].astype(np.float32))  # the summary has no lines


# ---- episodic memory ----


def entries(values, width=4):
    """Entries that are told apart by their value."""
    values = np.asarray(values, np.float32)
    keys = np.zeros((len(values), width), np.float32)
    keys[:, 0] = values
    return muzero.Entry(keys, values[:, None], np.abs(values))


def held(bank):
    return bank.entries.value[:, 0].tolist()


def test_first_in_first_out():
    add = jit(muzero.add)
    bank = muzero.empty_bank(4, 4, 1)
    bank = add(bank, entries([1, 2, 3]), np.array([True, False, True]))
    assert held(bank) == [1, 3, 0, 0] and bank.count == 2
    bank = add(bank, entries([4, 5, 6]), np.ones(3, bool))
    assert held(bank) == [6, 3, 4, 5] and bank.count == 5
    bank = add(bank, entries([0, 0, 0]), np.zeros(3, bool))
    assert held(bank) == [6, 3, 4, 5] and bank.count == 5
    assert np.array_equal(bank.entries.key[:, 0], held(bank))
    assert np.array_equal(bank.entries.priority, held(bank))


@pytest.mark.slow
def test_more_than_a_bank_holds():
    """The last stay, where they would lie had they come one by one."""
    bank = one_by_one = muzero.empty_bank(4, 4, 1)
    values = np.arange(1, 8)
    bank = muzero.add(bank, entries(values), np.ones(7, bool))
    for v in values:
        one_by_one = muzero.add(one_by_one, entries([v]), np.ones(1, bool))
    assert held(bank) == held(one_by_one) == [5, 6, 7, 4]
    assert bank.count == one_by_one.count == 7


def remembered():
    """(model, params, observation, latent without memory, bank that holds the batch)."""
    model, params = built()
    observation = seen(model)
    latent = called(model, "represent")(params, observation)
    values = jnp.array([[0.9, -0.5, -0.6], [-0.8, 0.1, 0.5], [0.0, 0.0, -0.2]])
    found = model.bank_entry(latent, values)
    return model, params, observation, latent, muzero.add(model.empty_bank(), found, np.ones(3) > 0)


def test_the_same_position_is_found():
    model, params, observation, latent, bank = remembered()
    likeness = memory.key_of(latent) @ bank.entries.key.T
    assert np.array_equal(np.argmax(likeness, 1), np.arange(BATCH))
    np.testing.assert_allclose(np.diagonal(likeness), 1, atol=1e-5)
    # and what the memory says of it leaves its key as it is
    told = called(model, "represent")(params, observation, bank)
    assert not np.allclose(told[:, -1], latent[:, -1], atol=1e-3)
    assert np.array_equal(told[:, :-1], latent[:, :-1])
    np.testing.assert_allclose(memory.key_of(told), memory.key_of(latent), atol=1e-6)


def test_an_empty_bank_is_none():
    model, params, observation, latent, bank = remembered()
    empty = called(model, "represent")(params, observation, model.empty_bank())
    assert np.array_equal(empty, latent)
    # What lies beyond the count does not matter.
    bank = bank._replace(count=jnp.int32(0))
    assert np.array_equal(called(model, "represent")(params, observation, bank), latent)


@pytest.mark.parametrize("count", [1, 3])
def test_memory_is_the_formula(count):
    """Against loops; with one entry the places that hold nothing are left out."""
    model, params, observation, latent, bank = remembered()
    priority = jnp.array([0.0, 30.0, 1.0, 0.0, 0.0, 0.0])
    bank = memory.Bank(bank.entries._replace(priority=priority), jnp.int32(count))
    got = called(model, "represent")(params, observation, bank)[0, -1]

    c, w = model.config, jax.tree.map(np.asarray, params["memory"])
    h, d = np.asarray(latent[0, -1]), c.width // c.memory_heads
    asked = np.asarray(memory.key_of(latent))[0]
    keys, values = np.asarray(bank.entries.key), np.asarray(bank.entries.value)
    likeness = keys @ asked * (1 + 0.1 * np.asarray(priority))
    top = sorted(range(count), key=lambda i: -likeness[i])[: c.memory_top]
    kv = [np.concatenate([keys[i], values[i]]) @ w["entry"]["kernel"] for i in top]
    query, parts = h @ w["query"]["kernel"], []
    for g in range(c.memory_heads):
        own = slice(g * d, (g + 1) * d)
        scores = [query[own] @ x[own] / math.sqrt(d) for x in kv]
        scores = np.array(scores) + (1 + w["likeness"][g]) * likeness[top]
        p = np.exp(scores - scores.max())
        parts.append(p / p.sum() @ np.array([x[c.width :][own] for x in kv]))
    m = np.concatenate(parts) @ w["out"]["kernel"]
    gate = 1 / (1 + np.exp(-(np.concatenate([h, m]) @ w["gate"]["kernel"])))
    want = h + gate * m
    np.testing.assert_allclose(got, want / np.sqrt(np.mean(want**2)), atol=1e-3)


def test_a_bank_needs_a_reader():
    assert built()[0].reads_bank and FULL.memory
    assert not muzero.build(built()[0].game, built()[0].viewer).reads_bank
