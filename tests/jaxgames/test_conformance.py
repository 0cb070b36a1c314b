"""The checks accept good games, and each catches a game that breaks its rule."""

import dataclasses
import itertools
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxgames import core, make
from jaxgames.conformance import RULES, Budget, ConformanceError, check_game
from tests.toys.highcard import SWAP, HighCard
from tests.toys.highcard import Rules as HighCardRules
from tests.toys.mnk import MNK
from tests.toys.mnk import Rules as MNKRules
from tests.toys.mnk import State as MNKState

pytestmark = pytest.mark.usefixtures("quick_compiler")


# ---- good games ----


@pytest.mark.parametrize(
    "game",
    [
        make("mnk"),
        make("highcard"),
        pytest.param(make("mnk", rows=4, cols=5, players=3), marks=pytest.mark.slow),
        pytest.param(make("mnk", players=1, k=2), marks=pytest.mark.slow),
        pytest.param(make("highcard", "pairs"), marks=pytest.mark.slow),
        pytest.param(make("highcard", players=6, teams=3, ranks=9), marks=pytest.mark.slow),
    ],
    ids=lambda game: f"{game.id}-{game.num_players}",
)
def test_good_games_pass(game):
    report = check_game(game, num_games=32, budget=Budget(20_000, 20_000, 20_000, 60.0))
    assert [line.rule for line in report.lines] == list(RULES)
    print(report)
    if game.id == "highcard":
        assert "0 with something hidden" not in report["knowledge"].split(",")[1]
        assert report["resample-varies"] != "no hidden chance met"
        assert report["picture-knowledge"] != "nothing hidden"
    assert "compile in" in report["cost"]
    assert f"{len(RULES)} rules of the contract hold" in str(report)


def test_only_the_rules_asked_for_run():
    report = check_game(make("mnk"), only=["sizes", "cost"])
    assert [line.rule for line in report.lines] == ["sizes", "cost"]
    assert report["sizes"] == "2 seats, 2 teams, 9 actions, at most 9 steps"
    with pytest.raises(ValueError, match="did you mean sizes"):
        check_game(make("mnk"), only=["size"])


# ---- one planted fault for every rule, or several ----

FAULTS: list[tuple] = []


def fault(rule, words, base=MNK, budget=None, **options):
    """Registers a class with one fault, the rule that must catch it, and what it says."""

    def add(mixin):
        cls = type(mixin.__name__, (mixin, base), {})
        rules = HighCardRules if base is HighCard else MNKRules
        FAULTS.append((rule, words, cls(rules(**options)), budget))
        return mixin

    return add


@fault("identity", "registered for another class")
class Unregistered:
    pass


@fault("identity", "is no text")
class NoVersion:
    version = 1


@fault("identity", "unequal")
class Unequal:
    def __eq__(self, other):
        return self is other

    __hash__ = object.__hash__


@fault("sizes", "is not 0..T-1")
class TeamGap:
    team_of = (0, 2)


@fault("sizes", "board actions of 9")
class TooManyBoardActions:
    board_actions = 2


@fault("types", ".cells from int8[3, 3] to int32[3, 3]")
class WideningStep:
    def _step(self, state, action, key):
        after = super()._step(state, action, key)
        return after.replace(cells=after.cells.astype(jnp.int32))


@fault("types", "rewards from float32[2] to float32[]")
class BroadcastRewards:
    def _step(self, state, action, key):
        return super()._step(state, action, key).replace(rewards=jnp.float32(0))


@fault("types", "current_player is int8[], want int32[]")
class NarrowPlayer:
    def _init(self, key):
        return super()._init(key).replace(current_player=jnp.int8(0))


@fault("weak-types", "init: .current_player has a weak type")
class WeakInit:
    def _init(self, key):
        return super()._init(key).replace(current_player=jnp.where(True, 0, 1))


@fault("weak-types", "observe: ['features'] has a weak type")
class WeakView:
    def observe(self, state, player):
        return {**super().observe(state, player), "features": jnp.where(player == 0, 0.0, 1.0)}


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class KeyState(MNKState):
    key: jax.Array


@fault("no-keys", ".key is a key")
class KeyInState:
    def _init(self, key):
        return KeyState(**vars(super()._init(key)), key=key)


@fault("one-trace", "step was traced 2 times")
class WeakInitRetraces(WeakInit):
    pass


@fault("deterministic", "init traces to another program each time")
class HostRandomness:
    _drawn: ClassVar = itertools.count()

    def _init(self, key):
        # a host's draw that never comes twice in a row, as one of nine bits would now and then
        cells = (next(self._drawn) >> np.arange(9)) & 1
        return super()._init(key).replace(cells=jnp.asarray(cells.reshape(3, 3), jnp.int8))


@fault("chance", "every key gives the same deal", HighCard)
class FixedDeal:
    def _init(self, key):
        return super()._init(jax.random.key(0))


@fault("chance", "no key changes anything", HighCard)
class FixedDraws:
    def _step(self, state, action, key):
        return super()._step(state, action, jax.random.key(0))


@jax.custom_batching.custom_vmap
def _wrong_in_batches(x):
    return x


@_wrong_in_batches.def_vmap
def _wrong_rule(axis_size, in_batched, x):
    return jnp.flip(x, axis=0), True


@fault("vmap", "step under vmap differs")
class WrongInBatches:
    def _step(self, state, action, key):
        after = super()._step(state, action, key)
        return after.replace(cells=_wrong_in_batches(after.cells))


@fault("scan", "scan")
class ChangingCarry:
    def step(self, state, action, key):
        after = super().step(state, action, key)
        return after.replace(current_player=after.current_player.astype(jnp.int8))


@fault("key-reuse", "KeyReuseError", HighCard)
class ReusedKey:
    def _step(self, state, action, key):
        jax.random.bits(key)
        return super()._step(state, action, key)


@fault("key-reuse", "KeyReuseError", HighCard)
class ReusingBot:
    @property
    def bots(self):
        def bot(state, key):
            return core.random_bot(state, key) & (jax.random.bits(key) >= 0)

        return {"random": bot}


@fault("cost", "init has 3 equations, budget 2", budget=Budget(init_equations=2))
class ManyEquations:
    pass


@fault("cost", "budget 0.001 s", budget=Budget(compile_seconds=0.001))
class SlowCompile:
    pass


@fault("start", "finished")
class FinishedStart:
    def _init(self, key):
        return super()._init(key).replace(truncated=jnp.bool_(True))


@fault("start", "rewards")
class PaidStart:
    def _init(self, key):
        return super()._init(key).replace(rewards=jnp.float32([1, -1]))


@fault("length", "run past max_steps 5")
class TooLong:
    max_steps = 5


@fault("turn", "current_player 2 at ply 2")
class PlayersWithoutEnd:
    def _step(self, state, action, key):
        after = super()._step(state, action, key)
        return after.replace(current_player=state.current_player + 1)


@fault("mask", "no legal action")
class Stuck:
    def _step(self, state, action, key):
        after = super()._step(state, action, key)
        few = jnp.sum(after.legal_action_mask) > 6
        return after.replace(legal_action_mask=after.legal_action_mask & few)


@fault("legal-play", "a legal action set `illegal`")
class HiddenRule:
    def step(self, state, action, key):
        return super().step(state, jnp.where(action == 4, -1, action), key)


@fault("terminal-mask", "has a false")
class EmptyMaskAtTheEnd:
    def step(self, state, action, key):
        after = super().step(state, action, key)
        return after.replace(legal_action_mask=after.legal_action_mask & ~after.done)


@fault("absorbing", ".current_player")
class TurnsAfterTheEnd:
    def step(self, state, action, key):
        after = super().step(state, action, key)
        player = jnp.where(state.done, 1 - state.current_player, after.current_player)
        return after.replace(current_player=player)


@fault("absorbing", ".rewards")
class PaysAgain:
    def step(self, state, action, key):
        after = super().step(state, action, key)
        return after.replace(rewards=jnp.where(state.done, state.rewards, after.rewards))


@fault("forfeit", "does not set `illegal`")
class Forgiving:
    def step(self, state, action, key):
        return super().step(state, action, key).replace(illegal=jnp.bool_(False))


@fault("forfeit", "does not end the game")
class ClampedActions:
    def step(self, state, action, key):
        return super().step(state, jnp.clip(action, 0, self.num_actions - 1), key)


@fault("forfeit", "forfeit_rewards are")
class UnpaidForfeit:
    def step(self, state, action, key):
        after = super().step(state, action, key)
        return after.replace(rewards=jnp.where(after.illegal, 0.0, after.rewards))


@fault("forfeit", "not the worst")
class RewardedForfeit:
    def forfeit_rewards(self, team):
        return -super().forfeit_rewards(team)


@fault("reward-sum", "rewards sum to 0, declared 1")
class WrongSum:
    reward_sum = 1.0


@fault("reward-sum", "a forfeit sums to -2, declared 0")
class AllPayForfeit:
    def forfeit_rewards(self, team):
        return jnp.full(2, -1.0, jnp.float32)


@fault("team-rewards", "over its seats", players=4)
class TeamsPaidBySeat:
    team_of = (0, 1, 0, 1)


@fault("observation", "board is int32")
class WideBoard:
    def observe(self, state, player):
        view = super().observe(state, player)
        return {**view, "board": view["board"].astype(jnp.int32)}


@fault("observation", "board (3, 4), board_shape (3, 3)")
class WrongBoard:
    def observe(self, state, player):
        view = super().observe(state, player)
        return {**view, "board": jnp.pad(view["board"], ((0, 0), (0, 1), (0, 0)))}


@fault("observation", "not all finite")
class InfiniteFeatures:
    def observe(self, state, player):
        cells = jnp.sum(state.cells != 0).astype(jnp.float32)
        return {**super().observe(state, player), "features": jnp.log(cells)[None]}


@fault("knowledge", "shows in the observation: ['features']", HighCard)
class LeakingObservation:
    def observe(self, state, player):
        view = super().observe(state, player)
        deck = state.deck.astype(jnp.float32)
        return {**view, "features": jnp.concatenate([view["features"], deck])}


@fault("knowledge", "shows in the mover's own mask", HighCard)
class LeakingMask:
    def _with_mask(self, state):
        other = state.hands[1 - state.current_player]
        mask = jnp.stack([jnp.bool_(True), other > 2]) | state.done
        return state.replace(legal_action_mask=mask)


@fault("resample-public", "resample changes current_player", HighCard)
class ResampledTurn:
    def resample(self, state, player, key):
        return self._with_mask(super().resample(state, player, key).replace(current_player=player))


@fault("resample-legal", "PositionError: hands: more cards of a rank", HighCard, copies=1)
class InventedCards:
    def resample(self, state, player, key):
        return self._with_mask(state.replace(hands=jnp.full_like(state.hands, state.hands[player])))


@fault("resample-legal", ".legal_action_mask", HighCard)
class StaleMask:
    def resample(self, state, player, key):
        world = super().resample(state, player, key)
        return world.replace(legal_action_mask=state.legal_action_mask)


@fault("resample-legal", ".deck", HighCard)
class LostCards:
    def resample(self, state, player, key):
        return super().resample(state, player, key).replace(deck=jnp.zeros_like(state.deck))


@fault("resample-function", "equal knowledge and key", HighCard)
class PeekingResample:
    """Keeps the true cards half of the time."""

    def resample(self, state, player, key):
        coin, key = jax.random.split(key)
        world = super().resample(state, player, key)
        keep = jax.random.bernoulli(coin)
        return jax.tree.map(lambda a, b: jnp.where(keep, a, b), state, world)


@fault("resample-varies", "resample never changes", HighCard)
class NoResample:
    def resample(self, state, player, key):
        return state


@fault("bots", "no bot 'random'")
class Botless:
    bots = {}


@fault("bots", "bot 'first' plays an illegal action")
class IllegalBot:
    @property
    def bots(self):
        return {"random": core.random_bot, "first": lambda state, key: jnp.int32(0)}


@fault("bots", "bot 'real' gives float32")
class RealBot:
    @property
    def bots(self):
        return {"random": core.random_bot, "real": lambda state, key: jnp.float32(0)}


@fault("bots-knowledge", "bot 'spy' looks at hidden information", HighCard)
class SpyBot:
    @property
    def bots(self):
        def spy(state, key):
            lower = state.hands[state.current_player] < jnp.max(state.hands)
            return jnp.where(lower & state.legal_action_mask[SWAP], SWAP, 0).astype(jnp.int32)

        return {"random": core.random_bot, "spy": spy}


@fault("picture", "ParseError")
class UnclosedPicture:
    def draw(self, state, viewer=None):
        return "<svg><g></svg>"


@fault("picture", "not <svg>")
class WrongPicture:
    def draw(self, state, viewer=None):
        return "<html></html>"


@fault("picture-knowledge", "draw shows seat", HighCard)
class OpenPicture:
    def draw(self, state, viewer=None):
        return super().draw(state, None)


@fault("picture-knowledge", "draw_text shows seat", HighCard)
class OpenTerminal:
    def draw(self, state, viewer=None):
        return "<svg/>"

    def draw_text(self, state, viewer=None):
        return self.to_text(state)


@fault("action-text", "'0,0' is action 0 and 1")
class SameText:
    def action_to_text(self, state, action):
        return super().action_to_text(state, max(int(action) - 1, 0))


@fault("action-text", "'0,1' of action 1 gives 3")
class Transposed:
    def action_from_text(self, state, text):
        return super().action_from_text(state, text[::-1])


@fault("action-text", "want a ValueError")
class AnyText:
    def action_from_text(self, state, text):
        try:
            return super().action_from_text(state, text)
        except ValueError:
            return 0


@fault("action-text", "is '0\\t0'")
class TabbedText:
    def action_to_text(self, state, action):
        return super().action_to_text(state, action).replace(",", "\t")


@fault("position-text", ".cells is int32[3, 3], want int8[3, 3]")
class WideText:
    def from_text(self, text):
        state = super().from_text(text)
        return state.replace(cells=state.cells.astype(jnp.int32))


@fault("position-text", ".illegal is False, want True")
class ForgetfulText:
    def from_text(self, text):
        return super().from_text(text).replace(illegal=jnp.bool_(False))


@fault("position-errors", "raises KeyError")
class RudeText:
    def from_text(self, text):
        try:
            return super().from_text(text)
        except core.PositionError as error:
            raise KeyError(text) from error


@fault("position-errors", "accepts ''")
class AnyPosition:
    def from_text(self, text):
        try:
            return super().from_text(text)
        except core.PositionError:
            return self._init(jax.random.key(0))


@fault("explain", "is explained by None")
class Silent:
    def explain_illegal(self, state, action):
        return None


@fault("explain", "legal action")
class Negative:
    def explain_illegal(self, state, action):
        return "no"


@fault("chance-text", "has no chance in its moves", HighCard)
class NoChanceHook:
    step_with_chance = core.Game.step_with_chance


@fault("chance-text", "another position: .hands", HighCard)
class WrongCard:
    def step_with_chance(self, state, action, chance):
        after = super().step_with_chance(state, action, chance)
        return after if chance is None else after.replace(hands=after.hands.at[:].set(0))


@fault("chance-text", "accepts nonsense")
class AnyChance:
    def step_with_chance(self, state, action, chance):
        return super().step_with_chance(state, action, None)


@fault("record", "makes another game")
class NotFoundAgain:
    pass


class EndsTwice(HighCard):
    """Registered, and its replays end otherwise than its games."""

    id = "endstwice"

    def step_with_chance(self, state, action, chance):
        after = super().step_with_chance(state, action, chance)
        return after.replace(truncated=after.terminated)


core.register("endstwice", f"{__name__}:EndsTwice")
FAULTS.append(("record", "result.truncated", EndsTwice(HighCardRules()), None))


#: Second faults of a rule that are long to find.
LONG = {"WrongPicture", "OpenTerminal", "LostCards", "RealBot", "WrongCard", "Negative"}


def trials():
    for rule, words, game, budget in FAULTS:
        name = type(game).__name__
        marks = [pytest.mark.slow] if name in LONG else []
        yield pytest.param(rule, words, game, budget, id=f"{rule}-{name}", marks=marks)


def test_every_rule_has_a_planted_fault():
    quick = {rule for rule, _, game, _ in FAULTS if type(game).__name__ not in LONG}
    assert quick == set(RULES)


@pytest.mark.parametrize(("rule", "words", "game", "budget"), trials())
def test_the_rule_catches_the_fault(rule, words, game, budget):
    with pytest.raises(ConformanceError) as caught:
        check_game(game, num_games=16, budget=budget, only=[rule])
    assert caught.value.rule == rule
    assert words in str(caught.value)
    assert str(caught.value).startswith(f"{rule}: ")
