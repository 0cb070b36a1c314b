"""Rules about turns, masks, ends of games and rewards."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from jaxgames.conformance.report import rule
from jaxgames.conformance.trial import Trial, difference, require
from jaxgames.core import State


@rule("start")
def start(trial: Trial) -> str:
    """A first position is unfinished and unrewarded."""
    state = trial.start
    require(not bool(state.done.any()), "init gives a finished game")
    require(not bool(state.illegal.any()), "init sets `illegal`")
    require(not bool(state.rewards.any()), "init gives rewards")
    return f"{trial.n} deals"


@rule("length")
def length(trial: Trial) -> str:
    """Every game ends within max_steps."""
    play = trial.play
    unfinished = int((~np.asarray(play.final.done)).sum())
    require(not unfinished, f"{unfinished} games run past max_steps {trial.game.max_steps}")
    plies = play.length
    return f"{plies.min()} to {plies.max()} plies, mean {plies.mean():.1f}"


@rule("turn")
def turn(trial: Trial) -> str:
    """The seat to move is one of the seats."""
    _no_fault(trial, "turn")
    return f"{trial.play.length.sum()} positions"


@rule("mask")
def mask(trial: Trial) -> str:
    """An unfinished position has a legal action."""
    _no_fault(trial, "mask")
    counts = np.asarray(trial.play.moves.before.legal_action_mask).sum(axis=1)
    return f"{counts.min()} to {counts.max()} legal actions"


@rule("legal-play")
def legal_play(trial: Trial) -> str:
    """An action of the mask never counts as illegal."""
    _no_fault(trial, "legal-play")
    return f"{trial.play.length.sum()} moves"


@rule("terminal-mask")
def terminal_mask(trial: Trial) -> str:
    """Once the game is over the mask is all true."""
    for states in (trial.finished, trial.forfeited):
        require(bool(states.legal_action_mask.all()), "a finished position's mask has a false")
    return f"{2 * trial.n} finished positions"


@rule("absorbing")
def absorbing(trial: Trial) -> str:
    """step returns a finished position as it is, with zero rewards."""
    a, tried = trial.game.num_actions, 0
    for states in (trial.finished, trial.forfeited):
        want = states.replace(rewards=jnp.zeros_like(states.rewards))
        for action in (0, a - 1, -1, a):
            actions = jnp.full(trial.n, action, jnp.int32)
            found = difference(want, trial.step(states, actions, trial.keys(5, tried)))
            require(found is None, f"a step after the end changes the position: {found}")
            tried += 1
    return f"{tried * trial.n} steps after the end"


@rule("forfeit")
def forfeit(trial: Trial) -> str:
    """An illegal action ends the game with `illegal` set and forfeit_rewards."""
    game, before = trial.game, trial.play.moves.before
    team = jnp.asarray(game.team_of)[before.current_player]
    want = np.asarray(jax.vmap(game.forfeit_rewards)(team))
    offender = want[np.arange(trial.n), np.asarray(before.current_player)]
    require(np.all(offender == want.min(axis=1)), "forfeiting is not the worst for the offender")
    legal = before.legal_action_mask
    inside = jnp.where(legal.all(axis=1), -1, jnp.argmin(legal, axis=1)).astype(jnp.int32)
    far = np.iinfo(np.int32)
    tries = [inside] + [
        jnp.full(trial.n, a, jnp.int32) for a in (-1, game.num_actions, far.min, far.max)
    ]
    for number, action in enumerate(tries):
        after = trial.step(before, action, trial.keys(6, number))
        require(after.terminated.all(), f"illegal action {int(action[0])} does not end the game")
        require(after.illegal.all(), f"illegal action {int(action[0])} does not set `illegal`")
        got = np.asarray(after.rewards)
        require(np.array_equal(got, want), f"rewards {got[0]}, forfeit_rewards are {want[0]}")
    return f"{len(tries) * trial.n} illegal actions"


@rule("reward-sum")
def reward_sum(trial: Trial) -> str:
    """A game's rewards, one per team, sum to what the game declares."""
    game, want = trial.game, trial.game.reward_sum
    first = [game.team_of.index(t) for t in range(game.num_teams)]
    sums = trial.play.returns[:, first].sum(axis=1)
    if want is None:
        return f"not constant: {sums.min():.3g} to {sums.max():.3g}"
    for found in sums[np.asarray(trial.play.final.done)]:
        require(abs(found - want) < 1e-4, f"rewards sum to {found:.6g}, declared {want:.6g}")
    for team in range(game.num_teams):
        found = float(np.asarray(game.forfeit_rewards(jnp.int32(team)))[first].sum())
        require(abs(found - want) < 1e-4, f"a forfeit sums to {found:.6g}, declared {want:.6g}")
    return f"{want:.3g} in {trial.n} games"


@rule("team-rewards")
def team_rewards(trial: Trial) -> str:
    """Seats of one team get equal rewards."""
    teams = np.asarray(trial.game.team_of)
    seen: list[State] = [trial.play.moves.after, trial.finished, trial.forfeited]
    for team in range(trial.game.num_teams):
        for rewards in [np.asarray(s.rewards) for s in seen] + [trial.play.returns]:
            of_team = rewards[:, teams == team]
            equal = (of_team == of_team[:, :1]).all()
            require(equal, f"team {team} gets {of_team[0].tolist()} over its seats")
    return f"{trial.game.num_teams} teams"


def _no_fault(trial: Trial, name: str) -> None:
    fault = trial.play.faults.get(name)
    require(fault is None, str(fault))
