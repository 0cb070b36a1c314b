"""Every preset we ship is typed, loads, and ends."""

import pathlib

import pytest
from omegaconf import OmegaConf

import configs
from configs import schema
from jaxgames import core


def test_no_file_is_missed():
    files = [p for p in pathlib.Path(configs.__file__).parent.rglob("*.y*ml")]
    files = [p for p in files if p.parent.name != "ablations"]  # lists of variants
    assert len(files) == len(configs.presets()) > 0
    assert {"sequence", "sequence/full", "sequence/dqn", "sequence/smoke"} <= set(configs.presets())


@pytest.mark.parametrize("name", configs.presets())
def test_preset(name):
    resolved = configs.load(name)
    cls = schema.config_type(resolved.config.game.name)
    assert OmegaConf.get_type(resolved.tree) is schema.mirror(cls)
    assert isinstance(resolved.config, schema.Config)
    for key in resolved.flat():
        schema.annotation(cls, key)
    assert isinstance(configs.make_game(resolved.config), core.Game)
    train = resolved.config.train
    assert train.minutes > 0 or train.chunks > 0, "training would never end"
