"""`jaxgames benchmark ablation`: lists of variants, budgets, tables that go on."""

import importlib.resources
import json

import jax
import jax.numpy as jnp
import pytest

import configs
from algorithms import optim
from algorithms.learner import Learner, fresh
from configs import ConfigError, loader
from experiments import cli, errors
from experiments.benchmarks import ablation, variants
from experiments.resolve import resolve
from experiments.shell import as_typed
from tests.experiments.test_train_ppo import PPO

SMALL = [
    *(text for text in PPO if not text.startswith(("train.", "ppo.critic"))),
    "benchmark.seeds=1",
    "benchmark.updates=8",
    "benchmark.pairs=2",
    "benchmark.player=network",
]
LIST = """
base: {about: the preset}
deep: {about: one more block, set: [network.blocks=1]}
same: {about: nothing, set: [network.blocks=0]}
blind: {about: needs a crop, set: [network.blocks=1], sees: whole}
"""


# ---- lists ----


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("[]", "must hold keys and values"),
        ("{}", "lists no variants"),
        ("one: {set: []}", "one: needs a section with a text `about`"),
        ("one: seed=3", "one: needs a section"),
        ("one: {about: x, sets: []}", "one: unknown key 'sets'; did you mean set"),
        ("one: {about: x, set: seed=3}", "one: set is a list of texts"),
        ("one: {about: x, set: [3]}", "one: set is a list of texts"),
        ("one: {about: x, sees: 3}", "one: sees is a text"),
        ("one: {about: x, beside: [two]}", "one: beside is a text"),
        ("one: {about: x, beside: two}", "one: beside: unknown name 'two'"),
    ],
)
def test_what_is_no_list_is_named(tmp_path, text, rule):
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match="^mine.yaml: ") as caught:
        variants.read(path)
    assert rule in str(caught.value)


def trials(preset, *texts):
    base = configs.load(preset, texts)
    game = configs.make_game(base.config).for_search()
    plain = ablation.trial(variants.Variant("base", ""), base, game)
    found, skipped = ablation.trials(base, plain, game)
    return {one.variant.name: one for one in found}, skipped


def test_every_switch_of_the_shipped_list_fits_a_preset():
    """Networks and learners are built, none is compiled; each variant has its settings."""
    known = {variant.name for variant in variants.variants("eight_in_a_row")}
    small, left = trials("eight_in_a_row/smoke")
    assert set(left) == {"focus", "unfocused", "untaught"} and set(small) == known - set(left)
    assert small["patterns"].model.config.patterns
    assert not small["base"].model.config.patterns
    assert small["learned"].config.muzero.dynamics == "learned"
    sizes = {name: one.model.num_params() for name, one in small.items()}
    base = sizes["base"]
    assert sizes["merged"] == sizes["paranoid"] == sizes["unturned"] == base
    assert sizes["inconsistent"] < base < min(sizes["patterns"], sizes["auxiliary"], sizes["stem"])
    large, left = trials("eight_in_a_row/large_smoke", "benchmark.variants=[focus,unfocused]")
    assert set(large) == {"unfocused"} and left == {"focus": "the base has it"}
    taught, left = trials("eight_in_a_row/ablation")
    assert taught["untaught"].learner.imitate is None and set(left) == {"focus", "unfocused"}
    assert "whole" in taught["cropped_focus"].model.observation_spec


def test_a_game_by_name_takes_the_preset_of_its_ablation():
    assert resolve("benchmark", "", ["game=eight_in_a_row"], "ablation").preset.endswith(
        "/ablation"
    )
    assert resolve("benchmark", "", ["game=eight_in_a_row"], "train").preset == "eight_in_a_row"
    assert resolve("benchmark", "", ["game=mnk"], "ablation").preset == "sequence"


def test_the_page_of_the_game_lists_the_switches():
    page = importlib.resources.files("jaxgames.eight_in_a_row").joinpath("README.md").read_text()
    for variant in variants.variants("eight_in_a_row"):
        if variant.set:
            assert f"`{variant.name}`" in page and as_typed(variant.set) in page, variant.name


def test_variants_win_over_the_settings_of_the_command():
    base = configs.load("eight_in_a_row/smoke", ["muzero.reanalyse=3", "muzero.unroll=3"])
    one = variants.Variant("one", "", ("muzero.reanalyse=7",))
    assert ablation.applied(base, one).config.muzero.reanalyse == 7
    assert ablation.applied(base, one).config.muzero.unroll == 3


def test_what_does_not_fit_is_refused_by_name_and_left_out_of_all():
    text = "muzero_network.attention=plain"  # `merged` is a form of the other
    with pytest.raises(ConfigError, match="^benchmark.variants: merged: .*attention mla only"):
        trials("eight_in_a_row/smoke", text, "benchmark.variants=[merged]")
    _, left = trials("eight_in_a_row/smoke", text)
    assert "attention mla only" in left["merged"] and left["plain"] == "the base has it"
    with pytest.raises(ConfigError, match="^benchmark.variants: unknown name 'pattern'.*patterns"):
        trials("eight_in_a_row/smoke", "benchmark.variants=[pattern]")
    base = configs.load("eight_in_a_row/smoke", ["benchmark.opponents=[thread]"])
    with pytest.raises(ConfigError, match="^benchmark.opponents: .*'thread'; did you mean threat"):
        ablation.run(base, print)
    with pytest.raises(ConfigError, match="^benchmark.ablation: .*eight_in_a_row"):
        trials("sequence/smoke")


# ---- tables ----


def table(capsys, *texts):
    """(exit code, report or None, what was said) of one call."""
    code = cli.main(["benchmark", "ablation", *SMALL, *texts, "--json"])
    printed = capsys.readouterr()
    return code, json.loads(printed.out) if printed.out else None, printed.err


def test_a_table_goes_on_where_it_ended(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(loader, "ABLATIONS", tmp_path)
    (tmp_path / "mnk.yaml").write_text(LIST)
    out = tmp_path / "table.json"
    play, games = ablation.arena.evaluate_paired, []

    def interrupted(*args, **more):
        games.append(args)
        if len(games) == 4:  # the second variant's second opponent
            raise KeyboardInterrupt
        return play(*args, **more)

    monkeypatch.setattr(ablation.arena, "evaluate_paired", interrupted)
    code, report, said = table(capsys, f"benchmark.out={out}")
    assert code == errors.INTERRUPTED and report is None
    assert "interrupted after 1 of 2 trainings; the same command goes on" in said
    first = json.loads(out.read_text())
    assert [row["variant"] for row in first["rows"]] == ["base"]

    monkeypatch.setattr(ablation.arena, "evaluate_paired", play)
    code, report, said = table(capsys, f"benchmark.out={out}")
    assert code == 0 and report == json.loads(out.read_text())
    assert "base, seed 0" not in said and "deep, seed 0 (2 of 2)" in said
    assert report["command"].startswith("jaxgames benchmark ablation game=mnk")
    assert report["skipped"] == {
        "same": "the base has it",
        "blind": "observations have no 'whole' here",
    }
    base, deep = report["rows"]
    assert base == first["rows"][0] and deep["changes"] == ["network.blocks=1"]
    assert deep["parameters"] > base["parameters"]
    for row in (base, deep):
        assert row["updates"] == 8 and row["moves_per_s"] > 0
        assert min(row["update_s"], row["compile_s"]) > 0 and row["problems"] == []
        assert {"policy", "value", "total"} <= set(row["loss"]) and row["explained_var"] <= 1.0
        assert set(row["strength"]) == {"random", "untrained"}
        for rate in row["strength"].values():
            assert rate["games"] == 4 and rate["even"] == 0.5
            assert rate["low"] <= rate["mean"] <= rate["high"]

    # More of the same goes on; other settings are another table.
    code, _, said = table(capsys, f"benchmark.out={out}", "benchmark.variants=[same]")
    assert code == 0 and len(json.loads(out.read_text())["rows"]) == 2
    code, _, said = table(capsys, f"benchmark.out={out}", "alphazero.value_weight=0.5")
    assert code == errors.USAGE and "alphazero.value_weight=1.0, not 0.5" in said
    without = lambda part, name: {k: x for k, x in part.items() if k != name}  # noqa: E731
    needed = ("variant", "about", "changes", "parameters", "runs")
    spoilt = [{"rows": [without(base, name)]} for name in needed]
    (run,) = base["runs"]
    for name in ("seed", "strength", "loss", "problem", "compile_s"):
        spoilt.append({"rows": [base | {"runs": [without(run, name)]}]})
    spoilt += [{"rows": 1}, {"rows": [base | {"runs": []}]}, {"settings": None}]
    spoilt.append({"rows": [base | {"runs": [run, run]}]})
    for wrong in ({"games": -4}, {"mean": 7.0}):
        strength = {name: part | wrong for name, part in run["strength"].items()}
        spoilt.append({"rows": [base | {"runs": [run | {"strength": strength}]}]})
    resolved = configs.load("eight_in_a_row/smoke", [f"benchmark.out={out}"])
    out.write_text(json.dumps(report))
    assert ablation._before(resolved, report["settings"]) == {"base": base, "deep": deep}
    for change in spoilt:
        out.write_text(json.dumps(report | change))
        with pytest.raises(ConfigError, match="^benchmark.out: .* holds no ablation"):
            ablation._before(resolved, report["settings"])
    out.write_text("[" * 100_000)
    with pytest.raises(ConfigError, match="^benchmark.out: .* holds no ablation"):
        ablation._before(resolved, report["settings"])
    out.write_text("{}")
    code, _, said = table(capsys, f"benchmark.out={out}")
    assert code == errors.USAGE and "holds no ablation" in said

    report |= {"skipped": {"blind": "why"}}
    ablation.show(report)
    shown = capsys.readouterr().out
    assert "deep: one more block: network.blocks=1" in shown and "blind: left out, why" in shown
    assert "8 updates each, 1 seeds" in shown


def test_trainings_of_a_variant_are_pooled():
    def run(seed, mean, problem=""):
        rate = {"games": 10, "even": 0.5, "mean": mean}
        return {
            "seed": seed,
            "updates": 8,
            "moves_per_s": 10.0 + seed,
            "update_s": None,
            "compile_s": 1.0 / (1 + seed),
            "loss": {} if problem else {"total": 2.0 + seed},
            "explained_var": 0.1,
            "strength": {} if problem else {"random": rate},
            "problem": problem,
        }

    row = ablation.summary(
        variants.Variant("one", "x"), 5, [run(0, 0.4), run(1, 0.8), run(2, 0, "NaN")]
    )
    assert row["moves_per_s"] == 11 and row["compile_s"] == 1 and row["update_s"] is None
    assert row["loss"] == {"total": 2.5} and row["problems"] == ["NaN"]
    rate = row["strength"]["random"]
    assert rate["games"] == 20 and abs(rate["mean"] - 0.6) < 1e-9
    assert rate["by_seed"] == [0.4, 0.8]
    assert abs(rate["low"] - 0.3866) < 1e-3 and abs(rate["high"] - 0.7812) < 1e-3  # Wilson, 12/20


def test_differences_are_told_beside_what_seeds_make():
    def row(name, *means):
        rate = {"even": 0.5, "by_seed": list(means)}
        return {"variant": name, "strength": {"random": rate}}

    rows = [row("base", 0.4, 0.5, 0.6), row("good", 0.8, 0.9, 1.0), row("same", 0.5, 0.6, 0.7)]
    found = ablation.compared([*rows, row("new", 0.9)], {"same": "good", "new": "base"})
    assert "base" not in found
    good, same, new = (found[name]["random"] for name in ("good", "same", "new"))
    # Each three are 0.1 apart, of which a mean of three has 0.1 / sqrt(3).
    assert abs(good["difference"] - 0.4) < 1e-9 and abs(good["error"] - 0.0816497) < 1e-6
    assert good["beyond"] and good["beside"] == "base"
    assert abs(same["difference"] + 0.3) < 1e-9 and same["beside"] == "good" and same["beyond"]
    assert abs(new["error"] - 0.1 * (1 + 1 / 3) ** 0.5) < 1e-9 and new["beyond"]
    assert not ablation.compared([*rows[:1], row("near", 0.5, 0.6, 0.6)], {})["near"]["random"][
        "beyond"
    ]
    assert ablation.compared([row("base", 0.4), row("one", 0.9)], {}) == {}
    assert ablation.difference(good) == "+40.0 ± 16.3 *" and ablation.difference(None) == ""
    assert ablation.difference(same | {"beyond": False}) == "-30.0 ± 16.3 to good"


# ---- budgets ----


def counting(bad=10**9):
    """A learner of two updates a chunk that learns from the third chunk on."""

    def run_chunk(state):
        state = state.__class__(**vars(state) | {"updates": state.updates + 2})
        done = int(state.updates)
        loss = jnp.float32("nan") if done >= bad else jnp.float32(done)
        return state, {"loss/total": loss, "optim/lr": jnp.float32(done > 4)}

    def init(key):
        kind = ablation.TrainState
        return fresh(kind, {"w": jnp.zeros(2)}, optim.OptimConfig(), key, replay=None, actor=None)

    return Learner(init, run_chunk, None, None, 2, lambda: (0, 0))


@pytest.mark.parametrize(
    ("texts", "bad", "updates", "problem"),
    [
        (["benchmark.updates=7"], 10**9, 8, ""),
        (["benchmark.updates=100"], 6, 6, "loss/total became NaN or infinite at update 6"),
        (["benchmark.seconds=1e-9"], 10**9, 2, ""),
    ],
)
def test_budgets(texts, bad, updates, problem):
    config = configs.load("sequence/smoke", texts).config
    learner = counting(bad)
    one = ablation.Trial(variants.Variant("one", ""), config, None, learner)
    state, chunks, said = ablation._trained(one, learner.init(jax.random.key(0)))
    assert int(state.updates) == updates == 2 * len(chunks) and said == problem
    assert [c.learned for c in chunks] == [i >= 2 for i in range(len(chunks))]
