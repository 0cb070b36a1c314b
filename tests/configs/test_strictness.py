"""Every line of the strictness table (product.md 2.1), and what lies between the lines."""

import pathlib

import pytest

import configs
from configs import ConfigError, overrides, schema

GAME = "game=mnk"


def load(*texts):
    return configs.load("", [GAME, *texts]).config


def refused(text, *parts):
    """The override is refused, with its key, in one sentence that holds all `parts`."""
    with pytest.raises(ConfigError) as caught:
        load(text)
    message = str(caught.value)
    for part in parts:
        assert part in message, message
    assert "\n" not in message
    return caught.value


# ---- the table, line by line ----


def test_unknown_key_names_section_and_nearest():
    error = refused("run.nme=x", "run.nme", "'nme'", "'run'", "did you mean name?")
    assert error.key == "run.nme" and "+" not in str(error)
    refused("sed=1", "top level", "did you mean seed")
    refused("optim.learnin_rate=1", "optim.learnin_rate", "unknown key 'optim'")


@pytest.mark.parametrize("text", ["+a.b=1", "++a.b=1", "+seed=1", "++seed=1"])
def test_added_keys(text):
    assert "+" not in str(refused(text, "can not be added").key)


@pytest.mark.parametrize("text", ["hydra.run.dir=x", "hydra/launcher=x", "hydra.verbose=true"])
def test_hydras_own_settings(text):
    refused(text, "hydra's own settings")


@pytest.mark.parametrize("text", ["~a.b", "~seed", "~seed=0"])
def test_removed_keys(text):
    refused(text, "can not be removed")


def test_float_for_an_int_has_a_hint():
    refused("seed=1e3", "seed", "whole number", "1000 or 1_000")
    refused("seed=2.0", "write 2")
    refused("seed=2.5", "whole number")
    assert load("seed=1_000").seed == 1000


@pytest.mark.parametrize("value", ["nan", "inf", "-inf"])
def test_floats_are_finite(value):
    refused(f"eval.capacity={value}", "eval.capacity")
    refused(f"gate.at_least={value}", "gate.at_least", "finite")
    refused(f"train.minutes={value}", "train.minutes", "finite")


def test_whole_numbers_fit_into_arrays():
    """Of every key, however deep, but seeds and sizes in bytes."""
    for value in (2**31 - 1, -(2**63), 10**30):
        for text in (f"muzero.king.period={value}", f"muzero.phase_plies=[{value}]"):
            refused(text, text.split("=")[0], "a whole number up to 2147483646, got")
    config = load("seed=4294967295", "seeds=[4294967295]", "muzero.replay_bytes=99999999999")
    assert config.seed == 2**32 - 1 and config.muzero.replay_bytes == 99999999999


def test_ranges():
    refused("seed=-1", "seed: 0 to")
    refused("train.minutes=-1", "train.minutes: at least 0")
    refused("eval.pairs=0", "eval.pairs: must be at least 1")
    refused("alphazero.optim.learning_rate=-1", "alphazero.optim.learning_rate: ")
    refused("train.eval.search.num_simulations=0", "train.eval.search.num_simulations: ")


@pytest.mark.parametrize("value", ["1,2", "choice(1,2)", "range(1,3)", "interval(0,1)"])
def test_sweeps(value):
    refused(f"seed={value}", "one value per run", "[1,2]")


def test_text_is_not_a_number():
    refused("run.name=1e3", "run.name", "a text", "quote it")
    refused("run.name=3", "a text")
    refused("run.name=true", "a text")
    assert load("run.name='1e3'").run.name == "1e3"
    refused("run.name='a b'", "run.name", "letters, digits")
    refused("run.name=../up", "run.name", "letters, digits")
    refused("run.name='..'", "run.name", "letters, digits")


@pytest.mark.parametrize("value", ["a=b", "a#b", "a~b", "a>b", "(a", "a]", "中文"])
def test_odd_values_get_the_hint_of_inner_quotes(value):
    refused(f"run.name={value}", f"\"run.name='{value}'\"")


def test_quoted_text():
    assert load("run.name='中文'").run.name == "中文"
    assert load("run.dir='a=b#c~d>(e'").run.dir == "a=b#c~d>(e"


@pytest.mark.parametrize("value", ["${oc.env:HOME}", "'${oc.env:HOME}'", "${seed}", "a${seed}"])
def test_interpolation(value):
    refused(f"run.dir={value}", "interpolation")


# ---- between the lines ----


def test_given_twice():
    with pytest.raises(ConfigError, match="seed: given twice: seed=1 and seed=2"):
        load("seed=1", "seed=2")


@pytest.mark.parametrize("value", ["str(3)", "int('3')", "shuffle([1,2])", "sort([2,1])"])
def test_functions(value):
    with pytest.raises(ConfigError):
        load(f"seed={value}")
    refused("run.name=str(3)", "functions")


def test_sections_are_set_key_by_key():
    refused("run={name:x}", "is a section", "name, dir")
    refused("run=null", "is a section")
    refused("seed.x=1", "single value")


def test_booleans_are_true_or_false():
    for value in ("1", "0", "yes", "on", "'true'", "null"):
        refused(f"run.resume={value}", "run.resume", "true or false")


def test_null_only_where_it_means_something():
    refused("seed=null", "seed", "null")
    assert load("run.step=null").run.step is None


def test_lists():
    assert load("train.eval.opponents=[random]").train.eval.opponents == ("random",)
    refused("train.eval.opponents=random", "needs a list like [1,2]")
    refused("train.eval.opponents=[1]", "train.eval.opponents[0]", "a text")


def test_choices():
    refused("device=gpuu", "device", "auto, cpu, gpu, tpu")


@pytest.mark.parametrize("text", ["seed", "", "=3", ".seed=3", "se ed=3", "seed@x=3", "seed:=3"])
def test_malformed(text):
    with pytest.raises(ConfigError):
        load(text)


def test_not_a_text():
    with pytest.raises(ConfigError, match="an override is a text"):
        load(3)


def test_game_options_are_those_of_the_game():
    config = load("game.options.rows=4", "game.options.players=3")
    assert config.game.options.rows == 4 and configs.make_game(config).num_players == 3
    refused("game.options.player=3", "game.options.player", "did you mean players?")
    refused("game.options.players=9", "game.options.players: 1 to 4")
    refused("game.preset=tictactoo", "game.preset", "did you mean tictactoe?")
    with pytest.raises(ConfigError, match="game.name: unknown name 'sequense'; did you mean seq"):
        configs.load("", ["game=sequense"])
    with pytest.raises(ConfigError, match="game.name: must be set"):
        configs.load("")


@pytest.mark.parametrize(
    "texts, field",
    [
        (["game.options.players=5"], "players"),
        (["game.options.players=8", "game.options.teams=3"], "teams"),
        (["game.options.lock_rule=six"], "lock_rule"),
        (["game.options.hand_size=60"], "hand_size"),
    ],
)
def test_contradictory_rules_of_sequence(texts, field):
    with pytest.raises(ConfigError) as caught:
        configs.load("", ["game=sequence", *texts])
    assert caught.value.key == f"game.options.{field}"


def test_derived_rules_stay_open():
    """Three seats imply three teams; the default of two must not be in the way."""
    config = configs.load("", ["game=sequence", "game.options.players=3"]).config
    assert config.game.options.teams == 3


def test_preset_names():
    with pytest.raises(ConfigError, match="unknown config 'sequense'; did you mean sequence"):
        configs.load("sequense")
    for name in ("../configs/sequence", "/etc/passwd", "sequence.yaml", "sequence/../sequence"):
        with pytest.raises(ConfigError, match="unknown config"):
            configs.load(name)


def test_sections_of_a_command():
    with pytest.raises(ConfigError, match="train.chunks: this command does not use 'train'"):
        configs.load("", [GAME, "train.chunks=3"], sections=("game", "seed"))


def test_origins():
    resolved = configs.load("sequence", ["seed=3"])
    assert resolved.origins["seed"] == "override"
    assert resolved.origins["game.name"] == "file sequence/default.yaml"
    assert resolved.origins["run.dir"] == "default"
    assert resolved.origins.keys() == resolved.flat().keys()


def test_resolved_file_round_trip(tmp_path: pathlib.Path):
    resolved = configs.load("sequence", ["seed=3", "run.name='1e3'"])
    (tmp_path / "config.yaml").write_text(resolved.yaml())
    again = configs.load_file(tmp_path / "config.yaml", ["seed=4"])
    assert again.flat() == resolved.flat() | {"seed": 4}
    assert again.origins["seed"] == "override"


@pytest.mark.parametrize(
    "text, message",
    [
        ("seed: 1\nsede: 2", "sede: unknown key .* did you mean seed.*config.yaml"),
        ("seed: '1'", "seed: needs a whole number"),
        ("run:\n  dir: ${oc.env:HOME}", "interpolation"),
        ("run: 3", "run: is a section"),
        ("- 1", "must hold keys"),
        ("seed: [", "not readable as YAML"),
        ("seed: !!python/object/apply:os.abort []", "line 1: tags .* are not taken"),
        ("a: &a [1]\nb: &b [*a, *a]\nc: [*b, *b]", r"line 2: aliases \(\*a\) are not taken"),
        ("seed: &a [*a]", "aliases"),
        ("seed: " + "[" * 50_000, "nested deeper than 16"),
        ("run: {name: '" + "x" * (1 << 16) + "'}", "at most 65536 characters"),
        ("seed: " + "9" * 5000, "not readable as YAML"),
        ("seed: 1\nseed: 2", "not readable as YAML"),
    ],
)
def test_files_are_as_strict(tmp_path, text, message):
    path = tmp_path / "config.yaml"
    path.write_text(text + ("\ngame: {name: mnk}" if text[0] != "-" else ""))
    with pytest.raises(ConfigError, match=message):
        configs.load_file(path)


def test_config_is_frozen_and_hashable():
    config = load()
    assert hash(config) == hash(load())
    with pytest.raises(AttributeError):
        config.seed = 3


def test_coerce_enum_and_literal():
    import enum
    from typing import Literal

    class Colour(enum.Enum):
        RED = 1

    assert overrides.coerce("red", Colour, "k") is Colour.RED
    with pytest.raises(ConfigError, match="one of red"):
        overrides.coerce("blue", Colour, "k")
    with pytest.raises(ConfigError, match="one of a, b"):
        overrides.coerce("c", Literal["a", "b"], "k")
    assert overrides.coerce([1, 2.5], tuple[int, float], "k") == (1, 2.5)
    with pytest.raises(ConfigError, match="needs 2 values, got 1"):
        overrides.coerce([1], tuple[int, float], "k")


def test_required():
    with pytest.raises(ValueError, match="^field: rule$"):
        schema.require(False, "field", "rule")
