"""`jaxgames play`: people and agents at one terminal, or through a pipe; a page: play_web.py.

A seat is shown what it may know and no more: the picture is drawn for the person to move,
and agents choose from `game.observe` and `game.resample`.
"""

from __future__ import annotations

import pathlib
import secrets
import shutil
import sys
import zlib
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from algorithms import agents
from configs import ConfigError, make_game
from experiments import errors
from experiments.commands.evaluate import seat as load_seat
from experiments.device import select
from jaxgames import record
from jaxgames.core import FieldError, Game, nearest
from jaxgames.match import IllegalAction, Match

HUMAN = "human"
#: Legal moves that are listed unasked; more are only counted.
LISTED = 40
#: Candidates that a hint shows.
CANDIDATES = 5

HELP = """\
Type a move in the game's notation or by its number, or one of:
  moves       the legal moves with their numbers     (m)
  moves WORD  those that begin with that word
  board       the position again                     (b)
  view WHERE  another part of a large board          (v)
  hint        what an agent would play, and why      (h)
  undo        back to your own last decision         (u)
  save FILE   the game so far as a record
  load FILE   go on from a record of this game
  resign      give up
  quit        leave the table                        (q)
  help        this text                              (?)"""
_COMMANDS = {
    "moves": "moves", "m": "moves", "board": "board", "b": "board", "view": "view", "v": "view",
    "hint": "hint", "h": "hint", "undo": "undo", "u": "undo", "save": "save", "load": "load",
    "resign": "resign", "quit": "quit", "q": "quit", "exit": "quit", "help": "help", "?": "help",
}  # fmt: skip
#: Commands that take more words; others with more words are a move of the game, if anything.
_WITH_WORDS = {"moves", "save", "load", "view"}


def main(call) -> int:
    config = call.resolved.config
    select(config.device)
    chosen = call.resolved.origins["seed"] != "default"
    seed = config.seed if chosen else secrets.randbelow(2**32)  # a new deal every time
    game = make_game(config)
    if config.play.web:
        from experiments.commands import play_web

        return play_web.run(config, game, seed, chosen)
    table = Table(game, seats(game, config.play.seats), seed)
    if not config.play.seats and not agents.packaged(game):
        print("no trained agent comes with this game: you play its strongest bot")
    if config.play.load:
        table.load(config.play.load)
    table.introduce()
    table.run()
    return errors.DONE


def seats(game: Game, specs: Sequence[str]) -> list[agents.Seat | None]:
    """Who sits where, None for a person; the last spec fills the seats that are left.

    Raises:
      ConfigError: more specs than seats, or an agent that does not exist.
    """
    if len(specs) > game.num_players:
        raise ConfigError("play.seats", f"{game.num_players} seats, got {len(specs)}")
    specs = list(specs) or [HUMAN, agents.default_spec(game)]
    specs += [specs[-1]] * (game.num_players - len(specs))
    known = {HUMAN: None}
    for spec in specs[: game.num_players]:
        if spec not in known:
            known[spec] = load_seat("play.seats", spec, game)
    return [known[spec] for spec in specs[: game.num_players]]


class Leave(Exception):
    """The person leaves the table."""


class Table:
    """One sitting: a match, who plays it, and a person's commands.

    Attributes:
      match: the game so far.
      seats: per seat an agent, or None for a person.
    """

    def __init__(self, game: Game, seats: Sequence[agents.Seat | None], seed: int):
        self.game, self.seats = game, list(seats)
        self.match = Match(game, seed)
        self.names = [HUMAN if s is None else s.agent.name for s in self.seats]
        self._own_files: set[pathlib.Path] = set()
        self._thinkers: dict[agents.Agent, object] = {}
        self._adviser: agents.Seat | None = None
        self._resigned: int | None = None
        self._shown: int | None = None  # seat that the screen was last drawn for
        self._view = None  # part of the board on the screen, as the game understands it
        #: A game without a picture of its own is drawn as its full position text.
        self._blind = type(game).draw_text is Game.draw_text and agents.hides_something(game)

    # ---- the sitting ----

    def introduce(self) -> None:
        for seat, name in enumerate(self.names):
            who = "you" if self.seats[seat] is None and self.names.count(HUMAN) == 1 else name
            partners = [s for s in self._team(self.game.team_of[seat]) if s != seat]
            beside = f" (with {', '.join(map(str, partners))})" if partners else ""
            print(f"seat {seat}{beside}: {who}")
        print(f"seed {self.match.seed}; type ? for help")

    def run(self) -> None:
        """Plays until the game is over and the people have left."""
        try:
            while True:
                if self.match.done or self._resigned is not None:
                    self._finish()
                    if HUMAN not in self.names:
                        return
                    self._ask(None)
                elif self.seats[self.match.seat] is None:
                    self._ask(self.match.seat)
                else:
                    self._agent_moves()
        except Leave:
            return

    def _agent_moves(self) -> None:
        seat = self.match.seat
        action, _ = self._think(self.seats[seat])
        self.match.play(action)
        move, *news = self._announced()
        print(f"seat {seat} ({self.names[seat]}) plays {move}")
        self._tell(news)

    def _announced(self) -> list[str]:
        """What everybody hears of the last move."""
        before, after = self.match.states[-2:]
        return self.game.announce(before, self.match.actions[-1], after)

    def _tell(self, news: Sequence[str]) -> None:
        for line in news:
            print(f"  {line}")

    def _play(self, move: int | str) -> None:
        """A person's move, and what came of it; raises IllegalAction."""
        self.match.play(move)
        self._tell(self._announced()[1:])

    def _ask(self, seat: int | None) -> None:
        """Takes lines from a person until the position changed; `seat` None: game over."""
        if seat is not None:
            self._hand_over(seat)
            self.show(seat)
            if len(self.match.legal()) <= LISTED:
                self.list_moves()
            else:
                print(f"{self._counts()}; `moves` lists them")
        before = (self.match, self.match.ply, self._resigned)
        while (self.match, self.match.ply, self._resigned) == before:
            prompt = "over (undo, save FILE, load FILE, quit)" if seat is None else f"seat {seat}"
            self.obey(self._read(f"{prompt}> "), seat)

    def _read(self, prompt: str) -> str:
        print(prompt, end="", flush=True)
        line = sys.stdin.readline()
        if not line:
            print("\nno more input; the game stays unfinished" if not self.match.done else "")
            raise Leave
        if not sys.stdin.isatty():
            print(line.rstrip())  # a transcript reads like a session
        return line.strip()

    def _hand_over(self, seat: int) -> None:
        """Two people at one terminal must not see each other's hands."""
        other, self._shown = self._shown, seat
        if other in (None, seat) or not sys.stdin.isatty() or self._blind:
            return
        if agents.hides_something(self.game):
            print("\n" * shutil.get_terminal_size().lines)
            self._read(f"seat {seat} to move: Enter when only you are looking ")

    # ---- what a person can say ----

    def obey(self, line: str, seat: int | None) -> None:
        """Does what one line says; whatever is wrong with it is explained, not raised."""
        word, _, rest = line.partition(" ")
        texts = {text.upper(): action for action, text in self.match.legal()}
        if not line:
            return
        command = _COMMANDS.get(word.lower())
        if rest and command not in _WITH_WORDS:
            command = None
        if seat is not None and line.upper() in texts:
            self._play(texts[line.upper()])
        elif command:
            getattr(self, f"_do_{command}")(rest.strip(), seat)
        elif seat is None:
            print(f"the game is over{nearest(word, _COMMANDS)}")
        elif line.isdecimal():
            legal = self.match.legal()
            if not 1 <= int(line) <= len(legal):
                print(f"there is no move {line}; they are numbered 1 to {len(legal)}")
            else:
                self._play(legal[int(line) - 1][0])
        else:
            self._obey_move(line)

    def _obey_move(self, line: str) -> None:
        """A move in its notation, or whatever else the game can read as one."""
        try:
            try:
                self._play(line)
            except IllegalAction:
                found = self.game.readings(self.match.state, line)
                if not found:
                    raise
                move = found[0] if len(found) == 1 else self._which(found)
                if move is not None:
                    self._play(move)
        except IllegalAction as error:
            print(f"not played: {error.rule}")
        except ValueError as error:
            print(f"not played: {error}")

    def _which(self, found: Sequence[str]) -> str | None:
        """Asks which of several moves is meant; None for none of them."""
        for number, text in enumerate(found, 1):
            print(f"  {number}) {text}")
        answer = self._read("which of these? ")
        if answer.isdecimal() and 1 <= int(answer) <= len(found):
            return found[int(answer) - 1]
        print("nothing played")
        return None

    def _do_moves(self, rest: str, seat: int | None) -> None:
        self.list_moves(rest)

    def _do_board(self, rest: str, seat: int | None) -> None:
        self.show(seat if seat is not None else self._viewer())

    def _do_view(self, rest: str, seat: int | None) -> None:
        try:
            self._view = self.game.move_view(self.match.state, self._view, rest)
        except ValueError as error:
            print(error)
        else:
            self._do_board("", seat)

    def _do_help(self, rest: str, seat: int | None) -> None:
        print(HELP)
        if self.match.legal():
            print(f"A move looks like this: {self.match.legal()[0][1]}")

    def _do_hint(self, rest: str, seat: int | None) -> None:
        if seat is None:
            print("the game is over")
        else:
            self.hint()

    def _do_undo(self, rest: str, seat: int | None) -> None:
        if self._resigned is not None:
            self._resigned = None
            return
        try:
            self.match.undo_to(seat if seat is not None else self._viewer())
        except ValueError:
            print("nothing to take back: you have not moved yet")

    def _do_save(self, rest: str, seat: int | None) -> None:
        if not rest:
            print("save where? write: save FILE")
            return
        path = pathlib.Path(rest)
        if path.exists() and path.resolve() not in self._own_files:
            print(f"not saved: {path} is there already, and is none of this sitting's files")
            return
        people = [
            record.Seat(name, None if s is None else s.meta.get("sha256"))
            for name, s in zip(self.names, self.seats, strict=True)
        ]
        meta = {} if self._resigned is None else {"resigned": self._resigned}
        try:
            record.write(path, record.from_match(self.match, people, meta=meta))
        except (OSError, FieldError) as error:
            print(f"not saved: {error}")
            return
        self._own_files.add(path.resolve())
        print(f"saved {path} ({self.match.ply} moves)")

    def _do_load(self, rest: str, seat: int | None) -> None:
        if not rest:
            print("load what? write: load FILE")
            return
        try:
            self.load(rest)
        except (OSError, FieldError) as error:
            print(f"not loaded: {error}")
        else:
            print(f"loaded {rest} ({self.match.ply} moves)")

    def _do_resign(self, rest: str, seat: int | None) -> None:
        if seat is None:
            print("the game is over")
        else:
            self._resigned = seat

    def _do_quit(self, rest: str, seat: int | None) -> None:
        raise Leave

    # ---- what it takes ----

    def load(self, path: str) -> None:
        """Goes on from the first record of a file.

        Raises:
          RecordError: no record, a broken one, or one of another game; nothing changes.
          OSError: can not be read.
        """
        found = next(iter(record.read(path)), None)
        if found is None:
            raise record.RecordError("record", f"{path} holds none")
        match = record.replay(found)
        if match.game != self.game:
            raise record.RecordError("game", "the record is of another game or other rules")
        self.match, self._resigned = match, None
        self._own_files.add(pathlib.Path(path).resolve())

    def show(self, seat: int | None) -> None:
        """The picture for `seat`; None is a spectator of agents and sees everything."""
        if self._blind:
            print("(this game has no picture for the terminal)")
        else:
            part = () if self._view is None else (self._view,)
            print(self.game.draw_text(self.match.state, seat, *part))

    def list_moves(self, only: str = "") -> None:
        """Legal moves with their numbers, grouped by the first word of their notation; `only`
        those of one group."""
        width = max(shutil.get_terminal_size().columns - 1, 40)
        groups: dict[str, list[str]] = {}
        legal = self.match.legal()
        notes = self.game.action_notes(self.match.state, [action for action, _ in legal])
        for number, ((_, text), note) in enumerate(zip(legal, notes, strict=True), 1):
            line = f"{number}) {text}" + (f" [{note}]" if note else "")
            groups.setdefault(_kind(text), []).append(line)
        if only:
            groups = {k: moves for k, moves in groups.items() if k.lower() == only.lower()}
            if not groups:
                print(f"no legal move begins with {only!r}")
        for moves in groups.values():
            cell = max(map(len, moves)) + 2
            per_line = max(width // cell, 1)
            for start in range(0, len(moves), per_line):
                print("".join(f"{m:{cell}}" for m in moves[start : start + per_line]).rstrip())

    def hint(self) -> None:
        """What the first agent at the table, else the default one, thinks of the position."""
        if self._adviser is None:
            at_table = [s for s in self.seats if s is not None]
            spec = agents.default_spec(self.game)
            self._adviser = at_table[0] if at_table else agents.from_spec(spec, self.game)
        state, adviser = self.match.state, self._adviser
        action, found = self._think(adviser)
        print(f"{adviser.agent.name} would play {self.game.action_to_text(state, action)}")
        if found is None:
            return
        weights, prior, visits, q, value = (
            np.asarray(x[0])
            for x in (found.weights, found.prior, found.visits, found.q, found.value)
        )
        legal = np.flatnonzero(np.asarray(state.legal_action_mask))
        order = legal[np.lexsort((-prior[legal], -weights[legal], -visits[legal]))]
        order = sorted(order, key=lambda a: a != action)  # its choice first
        total = max(float(visits.sum()), 1.0)
        print(f"  {'move':<12}{'prior':>8}{'visits':>8}{'share':>8}{'weight':>8}{'Q':>8}")
        for a in order[:CANDIDATES]:
            known = "-" if np.isnan(q[a]) else f"{q[a]:+.2f}"
            print(
                f"  {self.game.action_to_text(state, int(a)):<12}{prior[a]:8.1%}{visits[a]:8.0f}"
                f"{visits[a] / total:8.1%}{weights[a]:8.1%}{known:>8}"
            )
        rest = order[CANDIDATES:]
        if rest:
            print(
                f"  {f'{len(rest)} others':<12}{prior[rest].sum():8.1%}{visits[rest].sum():8.0f}"
                f"{visits[rest].sum() / total:8.1%}{weights[rest].sum():8.1%}"
            )
        sides = (_seats_text(self._team(team)) for team in range(self.game.num_teams))
        values = ", ".join(f"{side} {v:+.2f}" for side, v in zip(sides, value, strict=True))
        print(f"  expected outcome: {values}; Q is for seat {self.match.seat}, which is to move")

    def _think(self, seat: agents.Seat) -> tuple[int, agents.Analysis | None]:
        """The agent's move here, and what it thinks if it can tell."""
        agent = seat.agent
        if agent not in self._thinkers:
            self._thinkers[agent] = jax.jit(agent.analyse or agent.act)
        root = jax.random.fold_in(jax.random.key(self.match.seed), zlib.crc32(b"play"))
        keys = jax.random.fold_in(root, self.match.ply)[None]
        states = jax.tree.map(lambda x: jnp.asarray(x)[None], self.match.state)
        found = self._thinkers[agent](seat.params, keys, states, states.current_player)
        if agent.analyse is None:
            return int(found[0]), None
        return int(found.action[0]), found

    def _finish(self) -> None:
        self.show(self._viewer())
        if self._resigned is not None:
            print(f"seat {self._resigned} resigns")
            return
        result = self.match.result()
        for seat, reward in enumerate(result.rewards):
            print(f"seat {seat} ({self.names[seat]}): {reward:+g}")
        best = max(result.rewards)
        winners = [seat for seat, r in enumerate(result.rewards) if r == best]
        if len({self.game.team_of[seat] for seat in winners}) == self.game.num_teams:
            print("a draw")
        else:
            print(f"won by {_seats_text(winners)}")
        if result.truncated:
            print("the game was cut at its longest length")

    def _viewer(self) -> int | None:
        """The person whom the end is shown to: the last to look; None without people."""
        if HUMAN not in self.names:
            return None
        return self._shown if self._shown is not None else self.names.index(HUMAN)

    def _counts(self) -> str:
        kinds: dict[str, int] = {}
        for _, text in self.match.legal():
            kinds[_kind(text)] = kinds.get(_kind(text), 0) + 1
        parts = ", ".join(f"{k} {n}" if k else str(n) for k, n in kinds.items())
        groups = f" ({parts})" if set(kinds) != {""} else ""
        return f"{sum(kinds.values())} legal moves{groups}"

    def _team(self, team: int) -> list[int]:
        return [seat for seat, other in enumerate(self.game.team_of) if other == team]


def _seats_text(seats: Sequence[int]) -> str:
    return f"seat{'s' * (len(seats) > 1)} {', '.join(map(str, seats))}"


def _kind(text: str) -> str:
    """The group of a move: the first word of a notation of several words."""
    word, space, _ = text.partition(" ")
    return word if space else ""
