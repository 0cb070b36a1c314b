"""One table of the play page: a match, who sits where, and what each seat may see of it.

Everything here runs on the host and may compile; `experiments.serve.tables` calls it outside
the event loop, one call of a table at a time.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from algorithms import agents
from experiments.serve import analysis
from experiments.serve.models import Model
from experiments.serve.problems import Problem
from experiments.serve.security import BODY_BYTES
from jaxgames import record
from jaxgames.core import Game
from jaxgames.match import IllegalAction, Match

HUMAN, NETWORK = "human", "network"
#: Who can sit: a person, a model with its search, a rule bot, a model's network alone.
KINDS = (HUMAN, "model", "bot", NETWORK)
#: Bytes at most that a request to load a record has beside the record.
ENVELOPE = 1 << 12
#: Who sees everything.
ALL = "all"


@dataclasses.dataclass(frozen=True)
class Sitter:
    """Who sits on a seat.

    Attributes:
      kind: one of `KINDS`.
      model: who moves, None for a person.
      simulations: of each move; None: as the model likes.
      temperature: 0 the best move, more is looser.
    """

    kind: str = HUMAN
    model: Model | None = None
    simulations: int | None = None
    temperature: float = 0.0

    @property
    def label(self) -> str:
        if self.model is None:
            return HUMAN
        words = [self.model.name]
        if self.kind == NETWORK:
            words.append("net")
        elif self.simulations:
            words.append(f"sims={self.simulations}")
        if self.temperature:
            words.append(f"temp={self.temperature:g}")
        return ":".join(words)

    def fields(self) -> dict[str, Any]:
        """As in the request that seated it."""
        name = self.model.name if self.model else ""
        told = {"kind": self.kind, "name": name, "simulations": self.simulations}
        return told | {"temperature": self.temperature}


class Table:
    """A match and its seats.

    Attributes:
      match, sitters: see above.
      resigned: the seat that gave up, None.
      review: no more moves, all hands may be shown.
      analysis: ply -> what was found out about the position before that ply, JSON values.
      version: grows with every change.
      running: whether machines move when it is their turn.
      error: why a machine did not move, None.
      job: how the last analysis goes, None before the first.
      waits: what the thinking waits for, None for nothing.
      names: of the players of a record, who do not sit here; None: those of the sitters.
      opened: the ply from which on a person knew, or could know, all hands; None: nobody does.
        Such a game goes on as an open one, and its record says so.
    """

    def __init__(
        self,
        id: str,
        match: Match,
        sitters: Sequence[Sitter],
        review: bool = False,
        opened: int | None = None,
    ):
        self.id, self.match, self.sitters = id, match, tuple(sitters)
        self.game: Game = match.game
        self.hides = agents.hides_something(self.game)
        self.opened = opened if self.hides and self.people else None
        self.review = review
        self.resigned: int | None = None
        self.analysis: dict[int, dict[str, Any]] = {}
        self._versions = itertools.count(1)
        self.version, self.running = 0, not review
        self.error: dict[str, Any] | None = None
        self.job: dict[str, Any] | None = None
        self.waits: str | None = None
        self.names: list[str] | None = None
        self.used = time.monotonic()
        self._told: list[list[str]] = []
        self._movers: list[int] = []  # before each ply
        self._legal: dict[int, list[dict[str, Any]]] = {}

    # ---- where it stands ----

    @property
    def over(self) -> bool:
        return self.match.done or self.resigned is not None or self.review

    @property
    def people(self) -> list[int]:
        return [seat for seat, sitter in enumerate(self.sitters) if sitter.kind == HUMAN]

    @property
    def waits_for(self) -> int | None:
        """The seat of a machine that should move now, None."""
        if self.over or not self.running or self.error:
            return None
        seat = self.match.seat
        return None if self.sitters[seat].kind == HUMAN else seat

    @property
    def open(self) -> bool:
        """Whether all hands may be shown."""
        return self.over or not self.people or not self.hides or self.opened is not None

    def mover(self, ply: int) -> int:
        states = self.match.states if ply >= len(self._movers) else ()
        self._movers += [int(state.current_player) for state in states[len(self._movers) :]]
        return self._movers[ply]

    def shows(self, viewer: int | None, ply: int) -> bool:
        """Whether `viewer` may see what was thought about the position before `ply`: of another
        seat's position it would tell that seat's cards."""
        return viewer is None or not self.hides or self.mover(ply) == viewer

    def _tells_deal(self, viewer: int | None) -> bool:
        """Whether a view may hold what all hands follow from: not where moves can be taken back
        after it."""
        return viewer is None or not self.hides or self.review

    def changed(self) -> None:
        self.version = next(self._versions)  # threads and the event loop both come here
        self.used = time.monotonic()

    # ---- who looks ----

    def viewer(self, text: str, reads: bool = False) -> int | None:
        """The seat whose view is asked for, None for all hands; `reads` as in `shown_all`.

        Raises Problem for a seat that is not there, and for more than a person here may see.
        """
        seat = self.named(text)
        if seat is None:
            if not self.open:
                rule = "all hands are shown when the game is over, or in review"
                raise Problem("hidden", rule, "viewer")
            self.shown_all(reads)
        elif self.hides and self.sitters[seat].kind != HUMAN:
            if not self.open:
                raise Problem("hidden", f"seat {seat} is nobody's at this page", "viewer")
            self.shown_all(reads)
        return seat

    def named(self, text: str) -> int | None:
        """The seat that a text names, None for all; Problem for one that is not there."""
        if text == ALL:
            return None
        if not text.isascii() or not text.isdecimal() or len(text) > 3:
            raise Problem("invalid", f"a seat or {ALL!r}, got {text[:40]!r}", "viewer")
        if int(text) >= self.game.num_players:
            raise Problem("invalid", f"seats are 0 to {self.game.num_players - 1}", "viewer")
        return int(text)

    def shown_all(self, reads: bool = False) -> None:
        """Takes note that a person saw, or could see, more than its own hand; Problem where that
        is new and the caller only `reads`, who must not change what others may take back."""
        if self.hides and self.people and self.opened is None:
            if reads:
                rule = "this token may only read, and to show all hands would open the game"
                raise Problem("forbidden", rule)
            self.opened = self.match.ply
            self.changed()

    def view(self, viewer: int | None, ply: int | None = None) -> dict[str, Any]:
        """What `viewer` sees now, or saw before `ply`."""
        self._listen()
        match, last = self.match, self.match.ply
        at = last if ply is None else ply
        if not 0 <= at <= last:
            raise Problem("invalid", f"plies are 0 to {last}, got {ply}", "ply")
        state = match.states[at]
        mover = None if bool(state.done) else int(state.current_player)
        sees_moves = mover is not None and (not self.hides or viewer in (None, mover))
        return self.pulse() | {
            "game": self.game.id,
            "rules": _ruleset(self.game),
            "seed": match.seed if self.open and self._tells_deal(viewer) else None,
            "ply": at,
            "plies": last,
            "viewer": ALL if viewer is None else viewer,
            "hides": self.hides,
            "open": self.open,
            "review": self.review,
            "opened": self._opened(),
            "seats": [s.fields() | {"label": s.label} for s in self.sitters],
            "names": self.names or [s.label for s in self.sitters],
            "teams": list(self.game.team_of),
            "to_move": mover,
            "done": self.over if at == last else False,
            "result": self._result() if match.done or self.resigned is not None else None,
            "scene": self.game.scene_json(state, viewer),
            "legal": self.legal(at) if sees_moves else [],
            "history": [self._line(p) for p in range(last)],
            "news": self._told[at - 1][1:] if at else [],
            "analysis": self._shown_analysis(viewer, at),
            "values": self._values(viewer),
            "can": self._can(viewer),
        }

    def pulse(self) -> dict[str, Any]:
        """What changes while somebody thinks."""
        thinking = self.waits_for
        return {"id": self.id, "version": self.version, "thinking": thinking, "error": self.error,
                "running": self.running, "job": self.job, "waits": self.waits}  # fmt: skip

    def _can(self, viewer: int | None) -> dict[str, Any]:
        """What the viewer may do; "back": the first ply to which moves are taken back, None."""
        mine = viewer is not None and viewer in self.people
        turn = not self.over and viewer == self.match.seat and mine
        last, back = self._decision(viewer) if mine else None, self._back()
        undo = mine and back is not None
        if undo and self.resigned is None:
            undo = last is not None and last >= back
        return {"undo": undo, "move": turn, "resign": turn, "back": back}

    def _decision(self, seat: int) -> int | None:
        """The ply of a seat's last move."""
        plies = reversed(range(self.match.ply))
        return next((ply for ply in plies if self.mover(ply) == seat), None)

    def _back(self) -> int | None:
        """The first ply to which moves may be taken back. What was played before all hands were
        seen stays played, and so does how it ended."""
        if self.review or (self.opened is not None and self.resigned is not None):
            return None
        return self.opened or 0

    def _opened(self) -> int | None:
        """`opened` if a move was, or may still be, made after it."""
        ended = self.match.done and self.opened == self.match.ply
        return None if ended else self.opened

    def _line(self, ply: int) -> dict[str, Any]:
        move, *news = self._told[ply]
        return {"ply": ply, "seat": self.mover(ply), "text": move, "news": news}

    def _listen(self) -> None:
        """Catches up with what everybody may hear of the moves."""
        states, actions = self.match.states, self.match.actions
        for ply in range(len(self._told), len(actions)):
            self._told.append(self.game.announce(states[ply], actions[ply], states[ply + 1]))

    def legal(self, ply: int) -> list[dict[str, Any]]:
        """The legal moves before `ply`: action, text, group (the first word of a notation of
        several) and, where the text does not say it, a note."""
        if ply not in self._legal:
            state = self.match.states[ply]
            actions = np.flatnonzero(np.asarray(state.legal_action_mask)).tolist()
            notes = self.game.action_notes(state, actions)
            rows = []
            for action, note in zip(actions, notes, strict=True):
                text = self.game.action_to_text(state, action)
                word, space, _ = text.partition(" ")
                row = {"action": action, "text": text, "group": word if space else ""}
                rows.append(row | ({"note": note} if note else {}))
            self._legal = {ply: rows}  # one at a time: they are large
        return self._legal[ply]

    def _result(self) -> dict[str, Any]:
        result = self.match.result()
        return {
            "rewards": list(result.rewards),
            "terminated": result.terminated,
            "truncated": result.truncated,
            "resigned": self.resigned,
            "winners": self._winners(),
        }

    def _winners(self) -> list[int]:
        """Seats that did best; all of them in a draw, none while nothing is decided."""
        teams, seats = self.game.team_of, range(self.game.num_players)
        if self.match.done:
            rewards = self.match.result().rewards
            return [seat for seat in seats if rewards[seat] == max(rewards)]
        if self.resigned is not None and self.game.num_teams == 2:
            return [seat for seat in seats if teams[seat] != teams[self.resigned]]
        return []

    def picture(self, viewer: int | None, ply: int) -> str:
        """The position as text: whole if all is open, else as a terminal would show it."""
        state = self.match.states[ply]
        if viewer is None or not self.hides:
            return self.game.to_text(state)
        return self.game.draw_text(state, viewer)

    # ---- what people do ----

    def _must_go_on(self) -> None:
        if self.over:
            raise Problem("game_over", "no more moves here: the game is over")

    def _person(self, seat: int) -> None:
        if seat not in self.people:
            raise Problem("invalid", f"nobody at this page sits on seat {seat}", "seat")

    def play(self, seat: int, text: str, ply: int) -> list[str]:
        """A person's move; moves to choose from where the text may mean several, else [].

        Raises Problem; the table is then unchanged.
        """
        self._must_go_on()
        self._person(seat)
        if ply != self.match.ply:
            raise Problem("conflict", f"the game is at ply {self.match.ply}, not {ply}", "ply")
        if seat != self.match.seat:
            rule = f"it is the turn of seat {self.match.seat}"
            raise Problem("illegal", rule, "seat")
        try:
            try:
                self._push(self._meant(text))
            except IllegalAction:
                found = self.game.readings(self.match.state, text)
                if not found:
                    raise
                if len(found) > 1:
                    return found
                self._push(found[0])
        except IllegalAction as error:
            raise Problem("illegal", error.rule, "move") from None
        except ValueError as error:
            raise Problem("illegal", str(error), "move") from None
        return []

    def _meant(self, text: str) -> int | str:
        """A legal move's action where the text is its own text but for case; else the text."""
        wanted = " ".join(text.split()).upper()
        for row in self.legal(self.match.ply):
            if row["text"].upper() == wanted:
                return row["action"]
        return text

    def play_action(self, action: int) -> None:
        """A machine's move; IllegalAction would be its fault, and ours."""
        self._push(action)

    def _push(self, move: int | str) -> None:
        self.match.play(move)
        self._listen()
        self.changed()

    def undo(self, seat: int) -> None:
        """Back to the last decision of a person's seat, or before it gave up."""
        self._person(seat)
        if self.resigned is not None:
            self.goto(self.match.ply)
        elif (ply := self._decision(seat)) is not None:
            self.goto(ply)
        else:
            raise Problem("conflict", "nothing to take back: you have not moved yet")

    def goto(self, ply: int) -> None:
        """Takes back all moves from `ply` on."""
        if not 0 <= ply <= self.match.ply:
            raise Problem("invalid", f"plies are 0 to {self.match.ply}, got {ply}", "ply")
        back = self._back()
        if back is None or ply < back:
            raise Problem("conflict", "all hands were shown: play on from here at a new table")
        self.resigned = None
        self.match.undo(self.match.ply - ply)
        self._forget()

    def _forget(self) -> None:
        """Lets go of what was known of moves taken back."""
        plies = self.match.ply
        del self._told[plies:], self._movers[plies:]
        self._legal = {}
        self.analysis = {ply: found for ply, found in self.analysis.items() if ply <= plies}
        self.error = None
        self.changed()

    def resign(self, seat: int) -> None:
        self._must_go_on()
        self._person(seat)
        self.resigned = seat
        self.changed()

    def put_aside(self) -> None:
        """For review: no more moves here, and all hands may be shown."""
        if not self.match.done:
            self.shown_all()
        self.review, self.running = True, False
        self.changed()

    def run(self, on: bool) -> None:
        """Machines move, or wait; after an error they try again."""
        self.running, self.error = on and not self.review, None
        self.changed()

    # ---- analysis ----

    def plies_to_analyse(self, viewer: int | None) -> list[int]:
        """Positions of the game that `viewer` may have thought about, in order."""
        states = self.match.states
        found = [p for p in range(len(states)) if self.shows(viewer, p)]
        return [p for p in found if not bool(states[p].done)]

    def _shown_analysis(self, viewer: int | None, ply: int) -> dict[str, Any] | None:
        if ply not in self.analysis or not self.shows(viewer, ply):
            return None
        found = dict(self.analysis[ply])
        if ply < self.match.ply:
            text = self.game.action_to_text(self.match.states[ply], self.match.actions[ply])
            found["played"] = {"text": text, "loss": self._loss(ply)}
        return found

    def _values(self, viewer: int | None) -> list[dict[str, Any]]:
        """Per analysed position what was expected, for the graph of the game."""
        rows = []
        for ply in sorted(self.analysis):
            if self.shows(viewer, ply):
                found = self.analysis[ply]
                row = {"ply": ply, "value": found["value"], "simulations": found["simulations"]}
                rows.append(row | {"seat": self.mover(ply), "loss": self._loss(ply)})
        return rows

    def _loss(self, ply: int) -> float | None:
        """How much less the played move promised its seat than the best one; None: unknown."""
        if ply >= self.match.ply:
            return None
        text = self.game.action_to_text(self.match.states[ply], self.match.actions[ply])
        known = {row[0]: row[3] for row in self.analysis[ply]["moves"] if row[3] is not None}
        if text not in known or self.analysis[ply]["move"] not in known:
            return None
        return round(max(known[self.analysis[ply]["move"]] - known[text], 0.0), 4)

    # ---- records ----

    def record(self) -> record.Record:
        """The game so far with its analysis, as much of it as can be loaded again; it holds all
        hands."""
        names = self.names or [s.label for s in self.sitters]
        seats = [
            record.Seat(name, s.model.meta.get("sha256") if s.model else None)
            for name, s in zip(names, self.sitters, strict=True)
        ]
        meta: dict[str, Any] = {"seats": [s.fields() for s in self.sitters]}
        if self.resigned is not None:
            meta["resigned"] = self.resigned
        if self._opened() is not None:
            meta["opened"] = self.opened
        bare = record.from_match(self.match, seats, meta=meta)
        room = BODY_BYTES - ENVELOPE - len(json.dumps(record.dumps(bare)))
        kept = analysis.kept(self.analysis, room)
        if self.match.ply in kept:
            meta["analysis"] = kept.pop(self.match.ply)
        return record.from_match(self.match, seats, analysis=kept, meta=meta)


def replayed(found: record.Record, plies: int | None = None) -> Match:
    """The match that a record tells, up to a ply; RecordError."""
    if plies is None or plies >= len(found.moves):
        return record.replay(found)
    match = record.begin(found)
    for ply, move in enumerate(found.moves[:plies]):
        record.replay_move(match, ply, move)
    return match


def _ruleset(game: Game) -> dict[str, Any]:
    return {f.name: getattr(game.rules, f.name) for f in dataclasses.fields(game.rules)}
