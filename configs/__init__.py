"""Settings: typed schemas, YAML presets and a strict loader.

resolved = configs.load("sequence", ["seed=3"])
game = configs.make_game(resolved.config)
"""

from configs.loader import Resolved, load, load_file, make_game, presets
from configs.overrides import ConfigError

__all__ = ["ConfigError", "Resolved", "load", "load_file", "make_game", "presets"]
