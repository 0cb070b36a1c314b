"""Pictures of runs and of positions, for files and notebooks; no server, no browser.

    from experiments import plots
    plots.losses("runs/sequence-1").save("losses.png")
    plots.winrate("runs/first", "runs/second", x="wall")
    thought = plots.think(state, "two_step")        # or a bundle, a run, a packaged player
    plots.policy(state, thought)                    # a heat map on the board
    plots.tree(plots.think(state, "az").tree)

Each gives a `Picture`, which a notebook shows and which `save` writes as SVG or PNG. Boards,
heat maps and trees are our own SVG. Curves need matplotlib, and PNG of the others resvg_py: both
are in the extra `plots`, and imported when used.
"""

from experiments.plots.boards import board, moves, policy, q, visits
from experiments.plots.charts import chart, league, losses, reliability, winrate
from experiments.plots.picture import Picture, PlotError
from experiments.plots.think import Thought, think
from experiments.plots.tree import tree

__all__ = [
    "Picture",
    "PlotError",
    "Thought",
    "board",
    "chart",
    "league",
    "losses",
    "moves",
    "policy",
    "q",
    "reliability",
    "think",
    "tree",
    "visits",
    "winrate",
]
