"""`jaxgames export`: what is written gives what the bundle gives, and nothing is lost."""

import json
import pathlib
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tests.toys.highcard  # noqa: F401  (registers "highcard")
from algorithms import agents, bundle, muzero
from algorithms.muzero import play
from algorithms.networks.model import NetworkConfig, build
from algorithms.networks.muzero import MuZeroNetworkConfig
from configs import ConfigError
from experiments import cli, errors, export
from experiments.commands import export as command
from experiments.export import blobs, files, int8, onnx_graph, subject
from jaxgames import core

NETWORKS = {
    "conv": ("mnk", "alphazero", NetworkConfig(channels=4, blocks=1, hidden=8)),
    "q": ("mnk", "dqn", NetworkConfig(channels=4, blocks=0, hidden=8)),
    "cards": (
        "highcard",
        "ppo",
        NetworkConfig(kind="cards", channels=8, blocks=1, hidden=16, q_head=False),
    ),
    "muzero": (
        "mnk",
        "muzero",
        MuZeroNetworkConfig(width=16, heads=2, layers=2, kv_latent=8, q_latent=8, rotary=4,
                            ffn=16, patch=2, dynamics_layers=1, bins=5),
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A folder with a bundle of each kind of network."""
    folder = tmp_path_factory.mktemp("bundles")
    for name, (game_name, agent, config) in NETWORKS.items():
        game, more = core.make(game_name), {}
        if agent == "muzero":
            model, more = muzero.model(game, 0, config), muzero.describe(play.Thinking(), 0)
        else:
            model = build(game, config)
        params = jax.jit(model.init)(jax.random.key(3))
        meta = bundle.describe(game, agent=agent, network=config, step=7, run="r", **more)
        bundle.save(folder / name, params, meta)
    (folder / "begun").mkdir()
    (folder / "begun" / "config.yaml").touch()
    (folder / "network.onnx").mkdir()
    return folder


def run(word, *texts):
    return export.run(str(word), texts)


def looked_at(found, rows=6):
    """(observation, what the network says) of positions after a move."""
    deals = jax.jit(jax.vmap(found.game.init))(jax.random.split(jax.random.key(9), rows))
    moves = jax.random.categorical(jax.random.key(8), jnp.where(deals.legal_action_mask, 0.0, -1e9))
    keys = jax.random.split(jax.random.key(7), rows)
    states = jax.jit(jax.vmap(found.game.step))(deals, moves, keys)
    observation, _ = jax.jit(found.look)(found.params, states)
    return observation, jax.device_get(jax.jit(found.judge)(found.params, observation))


@pytest.mark.parametrize(
    "kind", ["conv", *(pytest.param(k, marks=pytest.mark.slow) for k in ("cards", "muzero"))]
)
def test_networks(home, tmp_path, kind):
    report = run(home / kind, f"export.out={tmp_path}", "export.formats=[network,onnx]")
    found = subject.read(str(home / kind))
    observation, wanted = looked_at(found)
    call, note = blobs.load(tmp_path / "network.jax")
    got = call(observation)
    assert got.keys() == wanted.keys() and {"logits", "value"} <= got.keys()
    for name in wanted:
        np.testing.assert_allclose(got[name], wanted[name], rtol=1e-5, atol=1e-6)
    assert note["platforms"] == ["cpu", "cuda"] and "bit for bit" in note["checked"]
    assert note["bundle"]["sha256"] == found.meta["sha256"]
    assert (
        str(pathlib.Path(subject.__file__).parents[2]).encode()
        not in (tmp_path / "network.jax").read_bytes()
    )

    onnxruntime = pytest.importorskip("onnxruntime", reason="the extra `export` is not installed")
    session = onnxruntime.InferenceSession(tmp_path / "network.onnx")
    given = {name: np.asarray(x) for name, x in observation.items()}
    for name, x in zip(wanted, session.run(list(wanted), given), strict=True):
        np.testing.assert_allclose(x, wanted[name], rtol=1e-4, atol=1e-5)
    one = session.run(None, {name: x[:1] for name, x in given.items()})  # any number of rows
    assert all(len(x) == 1 for x in one)
    assert [f["file"] for f in report["files"]] == ["network.onnx", "network.jax"]


READER = """
import json, pathlib, sys
for name in ("jaxgames", "algorithms", "configs", "experiments", "flax", "mctx"):
    sys.modules[name] = None  # importing it fails
import jax, numpy as np
from jax import export
folder = pathlib.Path(sys.argv[1])
def call(name, *arguments):
    read = export.deserialize(bytearray((folder / name).read_bytes()))
    return jax.jit(read.call)(*arguments)
given = dict(np.load(folder / "given.npz"))
part = lambda prefix: {k[2:]: x for k, x in given.items() if k.startswith(prefix)}
network = call("network.jax", part("o."))
search = call("search.jax", given["seed"], part("s."))
np.savez(folder / "got.npz", **{f"n.{k}": x for k, x in network.items()},
         **{f"s.{k}": x for k, x in search.items()})
"""


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["cards", "muzero"])
def test_a_reader_needs_nothing_of_ours(home, tmp_path, kind):
    texts = (f"export.out={tmp_path}", "export.formats=[network,search]", "export.rows=2")
    run(home / kind, *texts, "export.simulations=4")
    found = subject.read(str(home / kind))
    observation, wanted = looked_at(found)
    states = jax.vmap(found.game.init)(jax.random.split(jax.random.key(0), 2))
    key = jax.random.key(5)
    state = zip(blobs.leaf_names(states), jax.tree.leaves(states), strict=True)
    given = {f"o.{k}": x for k, x in observation.items()} | {f"s.{k}": x for k, x in state}
    np.savez(tmp_path / "given.npz", seed=jax.random.key_data(key), **given)
    subprocess.run([sys.executable, "-c", READER, tmp_path], check=True, cwd=tmp_path, timeout=120)
    got = np.load(tmp_path / "got.npz")
    for name in wanted:
        np.testing.assert_allclose(got[f"n.{name}"], wanted[name], rtol=1e-5, atol=1e-6)
    seat = agents.from_spec(f"{home / kind}:search:sims=4", found.game)
    wanted = jax.jit(seat.agent.analyse)(seat.params, key, states, states.current_player)
    for name in blobs.TOLD:
        np.testing.assert_allclose(got[f"s.{name}"], getattr(wanted, name), rtol=1e-5, atol=1e-6)
    assert (got["s.visits"].sum(1) > 0).all()


@pytest.mark.slow
def test_search(home, tmp_path):
    texts = (f"export.out={tmp_path}", "export.formats=[search]", "export.rows=2")
    run(home / "conv", *texts, "export.simulations=4")
    call, note = blobs.load(tmp_path / "search.jax")
    assert note["agent"].endswith("sims=4:worlds=1")
    game = core.make("mnk")
    states = jax.vmap(game.init)(jax.random.split(jax.random.key(0), 2))
    state = dict(zip(blobs.leaf_names(states), jax.tree.leaves(states), strict=True))
    key = jax.random.key(5)
    got = call(jax.random.key_data(key), state)
    seat = agents.from_spec(f"{home / 'conv'}:search:sims=4", game)
    wanted = jax.jit(seat.agent.analyse)(seat.params, key, states, states.current_player)
    for name in blobs.TOLD:
        np.testing.assert_allclose(got[name], getattr(wanted, name), rtol=1e-5, atol=1e-6)
    assert np.asarray(got["visits"]).sum() > 0


def test_int8(home, tmp_path):
    pytest.importorskip("qwix", reason="the extra `export` is not installed")
    texts = (f"export.out={tmp_path}", "export.formats=[int8]", "export.positions=40")
    report = run(home / "conv", *texts)
    loss = report["files"][0]["loss"]
    assert loss["positions"] == 40 and 0 <= loss["kl"] <= loss["kl_max"] < 0.1
    assert 0.5 < loss["top1"] <= 1 and 0 < loss["value_error"] <= loss["value_max"] < 0.2
    assert loss["weights_int8"] < loss["weights"]
    # The blob is the network with the rounded weights, not the one that was rounded.
    found = subject.read(str(home / "conv"))
    observation, full = looked_at(found)
    call, _ = blobs.load(tmp_path / "network_int8.jax")
    rounded = int8.dequantise(int8.quantise(found.params))
    wanted = jax.jit(found.judge)(rounded, observation)
    got = call(observation)
    np.testing.assert_allclose(got["logits"], wanted["logits"], rtol=1e-4, atol=1e-5)
    assert np.abs(got["logits"] - full["logits"]).max() > 1e-5


@pytest.mark.parametrize("kind, says", [("conv", "logits"), ("q", "q[:, :, 0]")])
def test_what_is_told_of_the_best_move(home, kind, says):
    found = subject.read(str(home / kind))
    assert f"the legal one of the largest {says}" in found.says
    states = jax.jit(jax.vmap(found.game.init))(jax.random.split(jax.random.key(9), 4))
    seat = agents.from_spec(f"{home / kind}:net", found.game)
    act = jax.jit(seat.agent.act)(seat.params, jax.random.key(0), states, states.current_player)
    observation, legal = jax.jit(found.look)(found.params, states)
    liked = found.preferences(jax.jit(found.judge)(found.params, observation))
    np.testing.assert_array_equal(jnp.argmax(jnp.where(legal, liked, -jnp.inf), 1), act)


@pytest.mark.slow
def test_the_loss_sees_damage(home):
    pytest.importorskip("qwix", reason="the extra `export` is not installed")
    found = subject.read(str(home / "conv"))
    spoilt = jax.tree.map(lambda x: x[::-1] * 3, found.params)
    good = int8.measure(found, int8.quantise(found.params), 32, 0)
    bad = int8.measure(found, spoilt, 32, 0)
    assert bad.kl > 10 * good.kl and bad.top1 < good.top1 and bad.value_error > good.value_error


def test_positions_are_of_whole_games(home):
    found = subject.read(str(home / "conv"))
    states = int8.positions(found, 100, 1)
    stones = (np.asarray(states.cells) != 0).sum((1, 2))
    assert not states.done.any() and stones.min() == 0 and stones.max() >= 6
    again = int8.positions(found, 100, 1)
    np.testing.assert_array_equal(states.cells, again.cells)


def test_nothing_is_overwritten_unasked(home, tmp_path, capsys):
    argv = ("export", str(home / "conv"), f"export.out={tmp_path / 'x'}")
    argv += ("export.formats=[network]",)
    assert cli.main(argv) == errors.DONE
    before = (tmp_path / "x" / "network.jax").read_bytes()
    assert "equal bit for bit on cpu" in capsys.readouterr().out
    assert cli.main(argv) == errors.USAGE
    told = capsys.readouterr().err
    assert "network.jax" in told and "export.overwrite=true" in told
    assert (tmp_path / "x" / "network.jax").read_bytes() == before
    assert cli.main((*argv, "export.overwrite=true", "--json")) == errors.DONE
    report = json.loads(capsys.readouterr().out)
    assert report["files"][0]["bytes"] == len(before)
    assert not [p for p in (tmp_path / "x").iterdir() if p.name.startswith(".")]


@pytest.mark.parametrize(
    "words, says",
    [
        ((), "say which bundle"),
        (("nothing/here",), "no bundle at 'nothing/here'"),
        (("{home}",), "no bundle at"),
        (("{home}/begun",), "is a run that has no bundle in best/ yet"),
        (("{home}/conv", "export.formats=[onx]"), "export.formats"),
        (("{home}/conv", "export.formats=[]"), "export.formats"),
        (("{home}/conv", "export.formats=[onnx,onnx]"), "export.formats"),
        (("{home}/conv", "export.platforms=[metal]"), "export.platforms"),
        (("{home}/conv", "export.platforms=[tpu]"), "export.platforms: cpu has to be among them"),
        (("{home}/conv", "export.rows=0"), "export.rows"),
        (("{home}/conv", "export.out={home}/conv/model.json"), "export.out"),
        (("{home}/conv", "export.out={home}", "export.overwrite=true"), "network.onnx is a folder"),
        (("{home}/conv", "export.ot=x"), "did you mean out"),
        (("{home}/conv", "{home}/cards"), "one word too many"),
    ],
)
def test_bad_input(home, capsys, words, says):
    words = [word.format(home=home) for word in words]
    assert cli.main(["export", *words]) == errors.USAGE
    told = capsys.readouterr().err
    assert says in told and told.count("\n") == 1


@pytest.mark.parametrize("out", ["{home}/conv/model.json/x", "/dev/null/x", "{home}/" + 300 * "x"])
def test_no_place_to_write(home, capsys, out):
    argv = ("export", str(home / "conv"), f"export.out={out.format(home=home)}")
    assert cli.main(argv) == errors.FAILED
    told = capsys.readouterr().err
    assert "export.out: can not write to" in told and told.count("\n") == 1


def test_a_search_too_large_for_the_memory(monkeypatch):
    monkeypatch.setattr(blobs.os, "sysconf", lambda name: 1)
    with pytest.raises(errors.RunError, match="GiB of memory, this machine has"):
        blobs._run(lambda x: {"y": jnp.sort(jnp.cumsum(x)[::-1])}, (jnp.arange(99.0),))


def test_broken_bundles(home, tmp_path, capsys):
    for name, spoil in (
        ("nan", lambda p: (p / "model.safetensors").write_bytes(b"\x80\x04." * 9)),
        ("json", lambda p: (p / "model.json").write_text("{")),
        ("game", lambda p: (p / "model.json").write_text(
            (p / "model.json").read_text().replace('"game": "mnk"', '"game": "chess"'))),
    ):  # fmt: skip
        broken = tmp_path / name
        broken.mkdir()
        for file in (home / "conv").iterdir():
            (broken / file.name).write_bytes(file.read_bytes())
        spoil(broken)
        assert cli.main(["export", str(broken), f"export.out={tmp_path / 'o'}"]) == errors.USAGE
        assert capsys.readouterr().err.count("\n") == 1
    assert not (tmp_path / "o").exists()


def test_missing_packages(home, tmp_path, monkeypatch):
    monkeypatch.setattr(command.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"onnx needs the package onnx: pip install"):
        run(home / "conv", f"export.out={tmp_path / 'o'}")
    assert not (tmp_path / "o").exists()


def test_a_blob_that_differs_is_not_written(home, tmp_path, monkeypatch):
    real = blobs.export.Exported.serialize
    other = jax.export.export(jax.jit(lambda o: {"logits": o["board"], "value": o["board"],
                                                 "q": o["board"]}))  # fmt: skip
    spec = {"board": jax.ShapeDtypeStruct((3, 3, 3, 2), jnp.int8),
            "features": jax.ShapeDtypeStruct((3, 1), jnp.float32)}  # fmt: skip
    wrong = real(other(spec))
    monkeypatch.setattr(blobs.export.Exported, "serialize", lambda self: wrong)
    with pytest.raises(errors.RunError, match="differs"):
        run(home / "conv", f"export.out={tmp_path}", "export.formats=[network]")
    assert not list(pathlib.Path(tmp_path).iterdir())


def test_how_far_off_a_blob_is():
    a = np.array([1.0, np.nan, -2.0], np.float32)
    assert blobs._off(a, a.copy()) == 0
    near = np.nextafter(a, np.float32(9))
    assert 0 < blobs._off(near, a) < 1e-6
    assert blobs._off(a[:2], a) == blobs._off(np.nan_to_num(a), a) == np.inf
    assert blobs._off(np.array([1, 2]), np.array([1, 3])) == np.inf


def test_a_full_disk_leaves_what_was_there(tmp_path, monkeypatch):
    path = tmp_path / "a.jax"
    files.write_with_note(path, b"old", {})
    real, calls = files.os.fsync, []

    def full(number):
        calls.append(number)
        if len(calls) == 2:
            raise OSError(28, "No space left on device")
        real(number)

    monkeypatch.setattr(files.os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        files.write_with_note(path, b"new", {})
    assert files.read(path)[0] == b"old" and len(list(tmp_path.iterdir())) == 2


def test_damaged_files_are_noticed(home, tmp_path):
    run(home / "conv", f"export.out={tmp_path}", "export.formats=[network]")
    path = tmp_path / "network.jax"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ValueError, match="sha256"):
        blobs.load(path)
    (tmp_path / "network.jax.json").write_text('{"format": "other"}')
    with pytest.raises(ValueError, match="format"):
        files.read(path)


def rows_of(x, places):
    return x.at[places].get(mode="promise_in_bounds", wrap_negative_indices=False)


@pytest.mark.parametrize(
    "function, named",
    [
        (lambda x: jnp.sort(x, axis=1), "sort"),
        (lambda x: jax.vmap(lambda r: jnp.zeros(5).at[r[0].astype(int)].add(r[1]))(x), "scatter"),
        (lambda x: x[x[:, 0].astype(int)], "dim_as_value"),  # where there are so many rows
        (lambda x: rows_of(x, x[:, 0].astype(int)), "gather"),
    ],
)
def test_what_onnx_has_no_words_for(function, named):
    pytest.importorskip("onnx", reason="the extra `export` is not installed")
    spec = {"x": jax.ShapeDtypeStruct((3,), jnp.float32)}
    with pytest.raises(onnx_graph.Untranslatable, match=named):
        onnx_graph.translate(lambda x: {"y": function(x)}, spec, "f")


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x[:, 1:] - x[:, :-1],
        lambda x: x[:, :, -1] + x[:, 0, 1:],
        lambda x: x[:, np.array([2, 0, 2])],
        lambda x: jnp.where(x > 0, x, 2.0),
        lambda x: jnp.concatenate([x, jnp.ones_like(x[:, :1])], axis=1),
        lambda x: jnp.stack([x, x + 1], axis=1).sum(2),
        lambda x: jnp.einsum("bij,bkj->bik", x, x),
        lambda x: jnp.pad(x, ((0, 0), (1, 0), (0, 2))),
        lambda x: jax.nn.softmax(x, axis=-1).max(1),
        lambda x: (x > 0).any(1) & ~(x > 1).all(1),
        lambda x: jnp.broadcast_to(jnp.arange(5.0), (x.shape[0], 5)) + x[:, 0, :1],
        lambda x: jax.nn.gelu(x.reshape(x.shape[0] * 3, 4), approximate=False),
        lambda x: jnp.argmax(x, axis=-1).astype(jnp.float32),
        lambda x: x.transpose(0, 2, 1).reshape(x.shape[0], -1) ** 3,
        lambda x: jnp.take(jnp.arange(14.0).reshape(7, 2), (x[:, 0] * 9).astype(int), axis=0),
        lambda x: jnp.take(jnp.arange(7.0), (x * 9).astype(int), mode="clip") + jnp.sign(x),
        lambda x: jax.lax.rem((x * 9).astype(jnp.int32), jnp.int32(4)).astype(jnp.float32),
        lambda x: jax.vmap(lambda r: jnp.zeros(5).at[(r[0] * 4).astype(int)].add(r[1]))(x),
    ],
)
def test_operations(function):
    onnxruntime = pytest.importorskip("onnxruntime", reason="the extra `export` is not installed")
    spec = {"x": jax.ShapeDtypeStruct((3, 4), jnp.float32)}
    model = onnx_graph.translate(lambda x: {"y": function(x)}, spec, "f")
    session = onnxruntime.InferenceSession(model.SerializeToString())
    for rows in (1, 5):
        x = np.random.default_rng(rows).normal(size=(rows, 3, 4)).astype(np.float32)
        (got,) = session.run(["y"], {"x": x})
        np.testing.assert_allclose(got, function(jnp.asarray(x)), rtol=1e-5, atol=1e-6)
