"""Run folders made by hand, row by row as a trainer writes them."""

import json
import os
import pathlib
import socket
import time

from experiments.run_folder import append
from jaxgames import make, record
from jaxgames.match import Match


def row(seq, kind="train", t=None, **values):
    """A row of metrics.jsonl: update 4 * seq, 100 moves each."""
    t = 1000.0 + 10 * seq if t is None else t
    head = {"seq": seq, "t": t, "step": 4 * seq, "env_steps": 100 * seq}
    return {**head, "kind": kind, **values}


def train(seq, **more):
    values = {"loss/policy": 3.0 / seq, "loss/value": 0.5, "env/steps_per_s": 1000.0 + seq}
    return row(seq, **{**values, "policy/entropy": 2.0, **more})


def evaluated(seq, mean=0.6, opponent="greedy"):
    name = f"eval/winrate/{opponent}"
    bounds = {f"{name}/low": mean - 0.05, f"{name}/high": mean + 0.05}
    return row(seq, "eval", **{name: mean, **bounds, f"eval/games/{opponent}": 200})


def folder(path: pathlib.Path, rows=(), state=None, **status) -> pathlib.Path:
    """A run at `path`; `state` None leaves STATUS.json out."""
    path.mkdir(parents=True)
    for below in ("eval", "games"):
        (path / below).mkdir()
    append(path / "metrics.jsonl", rows)
    append(path / "events.jsonl", [{"t": 1000.0, "event": "start"}])
    (path / "config.yaml").write_text("game: {name: mnk, preset: null}\nseed: 7\n")
    (path / "env.json").write_text(json.dumps({"preset": "sequence", "seed": 7, "commit": "abc"}))
    if state is not None:
        about = {"state": state, "pid": os.getpid(), "host": socket.gethostname()}
        (path / "STATUS.json").write_text(json.dumps({**about, "updated": "", **status}))
    return path


def aged(path: pathlib.Path, seconds: float) -> None:
    """Let a run have written last so long ago."""
    then = time.time() - seconds
    for file in path.rglob("*"):
        os.utime(file, (then, then))


def game(path: pathlib.Path, name="4", moves=("0,0", "1,1", "0,1", "1,2", "0,2"), number=1) -> None:
    """A record of tic-tac-toe in games/<name>.jsonl."""
    match = Match(make("mnk"), seed=3)
    for move in moves:
        match.play(move)
    kept = record.from_match(match, ["network", "random"], meta={"step": int(name)})
    record.write(path / "games" / f"{name}.jsonl", [kept] * number)
