"""`jaxgames replay RECORD`: a recorded game in the terminal, or a position of it as a picture."""

from __future__ import annotations

import json
import time

from experiments import errors
from experiments.commands.plot import first_record
from experiments.device import use_compile_cache
from jaxgames import record as records
from jaxgames.match import Match


def main(call) -> int:
    if len(call.configs) != 1:
        raise errors.UsageError("replay: say which record, a .json or .jsonl file")
    config = call.resolved.config.replay
    record = first_record(call.configs[0], "replay", config.game)
    use_compile_cache()
    match = records.replay(record, any_version=True)
    if config.viewer is not None and config.viewer >= match.game.num_players:
        rule = f"a seat from 0 to {match.game.num_players - 1}, got {config.viewer}"
        raise errors.UsageError(f"replay.viewer: {rule}")
    if call.flags.json:
        print(json.dumps(describe(record, match), ensure_ascii=False))
    elif not call.flags.quiet and not config.out:
        _show(record, match, config)
    if config.out:
        from experiments import plots

        ply = match.ply if config.ply is None else _at(match, config.ply)
        try:
            path = plots.board(match.states[ply], config.viewer).save(config.out)
        except plots.PlotError as error:
            text = str(error).replace("plot.out", "replay.out")
            raise errors.UsageError(text) from None
        except OSError as error:
            message = f"replay.out: can not write {config.out} ({error.strerror})"
            raise errors.RunError(message) from error
        if not call.flags.json and not call.flags.quiet:
            print(path)
    return errors.DONE


def describe(record: records.Record, match: Match) -> dict:
    """The game as JSON values."""
    return {
        "game": record.game,
        "seats": [seat.name for seat in record.seats],
        "plies": match.ply,
        "moves": [match.move_text(ply) for ply in range(match.ply)],
        "rewards": list(match.result().rewards),
        "done": match.done,
    }


def printable(text: str) -> str:
    """A text of a file that may come from anywhere, without what a terminal would obey."""
    return "".join(c if c.isprintable() else "?" for c in text)


def _at(match: Match, ply: int) -> int:
    """A ply below 0 counts from the end; UsageError outside the game."""
    found = ply + match.ply if ply < 0 else ply
    if not 0 <= found <= match.ply:
        raise errors.UsageError(f"replay.ply: the game has {match.ply} moves, got {ply}")
    return found


def _show(record: records.Record, match: Match, config) -> None:
    """The moves with what they changed, or one position."""
    names = [printable(seat.name) for seat in record.seats]
    print(f"{record.game}: {' – '.join(names)}, {match.ply} moves")
    first, last = 0, match.ply
    if config.ply is not None:
        first = last = _at(match, config.ply)
    for ply in range(first, last + 1):
        if ply:
            seat = int(match.states[ply - 1].current_player)
            print(f"\n{ply}. {names[seat]} (seat {seat}): {match.move_text(ply - 1)}")
        print(match.game.draw_text(match.states[ply], config.viewer))
        if config.seconds and ply < last:
            time.sleep(config.seconds)
    if last == match.ply and match.done:
        rewards = ", ".join(
            f"{n} {r:+g}" for n, r in zip(names, match.result().rewards, strict=True)
        )
        print(f"over: {rewards}")
