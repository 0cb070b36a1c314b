"""The command `jaxgames`: one grammar for every command.

    jaxgames COMMAND [CONFIG] [key.sub=value ...] [--flags]

A command is a row of `COMMANDS`: its target "module:function" is called with a `Call` and
returns an exit code. Nothing but the standard library is imported before a command runs.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import importlib
import json
import os
import sys
from collections.abc import Sequence

from experiments import errors


@dataclasses.dataclass(frozen=True)
class Flags:
    """How to print; nothing here changes a result."""

    json: bool = False
    quiet: bool = False
    json_logs: bool = False
    print_config: bool = False


@dataclasses.dataclass(frozen=True)
class Command:
    """A row of the command table.

    Attributes:
      target: "module:function", called as function(Call) -> exit code.
      summary: one line for --help.
      examples: two command lines.
      sections: top-level keys of the configuration that this command reads.
      subjects: choices of a first word, such as `benchmark env`; empty for none.
      max_configs: how many CONFIG words it takes.
      default_config: the CONFIG when none is given.
      word: what that word is called in the help.
    """

    target: str
    summary: str
    examples: tuple[str, str]
    sections: tuple[str, ...] = ()
    subjects: tuple[str, ...] = ()
    max_configs: int = 1
    default_config: str = ""
    word: str = "CONFIG"


@dataclasses.dataclass(frozen=True)
class Call:
    """One parsed command line."""

    command: str
    subject: str
    configs: tuple[str, ...]
    overrides: tuple[str, ...]
    flags: Flags

    @functools.cached_property
    def resolved(self):
        """The checked configuration (`configs.Resolved`); raises ConfigError."""
        from experiments.resolve import resolve

        named = self.configs and COMMANDS[self.command].word == "CONFIG"
        preset = self.configs[0] if named else ""
        return resolve(self.command, preset, self.overrides, self.subject)

    @property
    def argv(self) -> tuple[str, ...]:
        """The command line as words, flags left out."""
        words = ("jaxgames", self.command, self.subject, *self.configs, *self.overrides)
        return tuple(word for word in words if word)


_LEARNERS = ("alphazero", "dqn", "ppo", "imitation", "muzero")
_NETWORKS = ("network", "muzero_network")
_TRAINING = ("game", "agent", "seed", "device", "run", *_NETWORKS, *_LEARNERS, "train")

COMMANDS: dict[str, Command] = {
    "train": Command(
        "experiments.commands.train:main",
        "train an agent; leaves a run folder with checkpoints and the best bundle",
        ("jaxgames train sequence", "jaxgames train sequence/full run.name=big seed=3"),
        (*_TRAINING, "curriculum", "seeds", "gate", "population", "log"),
    ),
    "evaluate": Command(
        "experiments.commands.evaluate:main",
        "play paired games between two agents and print rates with intervals",
        (
            "jaxgames evaluate sequence eval.agent=two_step eval.pairs=1000 gate.at_least=0.55",
            "jaxgames evaluate guandan eval.agent=strong eval.opponent=greedy 'eval.forms=[round]'",
        ),
        ("game", "seed", "device", "run", "eval", "gate"),
    ),
    "tournament": Command(
        "experiments.commands.tournament:main",
        "let every two of some agents play paired games; print payoffs and ratings",
        (
            "jaxgames tournament guandan 'tournament.agents=[random,greedy,strong]' seed=3",
            "jaxgames tournament sequence tournament.pairs=500 tournament.out=ratings.json",
        ),
        ("game", "seed", "device", "tournament"),
    ),
    "play": Command(
        "experiments.commands.play:main",
        "play against an agent in the terminal, or with play.web=true on a page",
        (
            "jaxgames play sequence 'play.seats=[greedy,human]'",
            "jaxgames play guandan play.web=true",
        ),
        ("game", "seed", "device", "play", "serve"),
    ),
    "serve": Command(
        "experiments.commands.serve:main",
        "answer moves and analyses over HTTP, and serve the pages",
        (
            "jaxgames serve",
            "jaxgames serve 'serve.games=[sequence]' serve.port=8080 serve.models_dir=bundles",
        ),
        ("seed", "device", "serve"),
        max_configs=0,
        default_config="sequence",
    ),
    "benchmark": Command(
        "experiments.commands.benchmark:main",
        "measure steps, simulations or updates per second, or what each switch of a learner is "
        "worth; writes nothing but stdout",
        ("jaxgames benchmark env game=sequence", "jaxgames benchmark search --json"),
        (*_TRAINING, "curriculum", "benchmark", "serve"),
        subjects=("env", "search", "train", "ablation", "serve"),
        default_config="sequence",
    ),
    "wire": Command(
        "experiments.commands.wire:main",
        "Guandan over WebSockets: a v1006 platform, or one of our agents on such a platform",
        (
            "jaxgames wire server 'wire.seats=[wire,greedy,wire,greedy]' wire.log=logs",
            "jaxgames wire client wire.url=ws://127.0.0.1:23456/game/one wire.agent=greedy",
        ),
        ("game", "seed", "device", "wire"),
        subjects=("server", "client"),
        default_config="guandan/wire",
    ),
    "data": Command(
        "experiments.commands.data:main",
        "make logs of Guandan matches, or check those in a file or folder",
        (
            "jaxgames data make game=guandan game.preset=match data.matches=5 data.out=logs",
            "jaxgames data check logs data.out=clean --json",
        ),
        ("game", "seed", "device", "data"),
        subjects=("make", "check"),
    ),
    "configs": Command(
        "experiments.commands.configs:main",
        "list the presets, show one with the origin of each value, or compare two",
        ("jaxgames configs show sequence seed=3", "jaxgames configs diff sequence sequence/full"),
        subjects=("list", "show", "diff"),
        max_configs=2,
    ),
    "health": Command(
        "experiments.commands.health:main",
        "how a run is doing: its health lights, from the run folder's files alone",
        ("jaxgames health sequence-1", "jaxgames health /data/runs/first --json"),
        word="RUN",
    ),
    "dashboard": Command(
        "experiments.commands.dashboard:main",
        "watch runs in a browser, going on or over; or write one as a single HTML file",
        (
            "jaxgames dashboard sequence-1",
            "jaxgames dashboard sequence-1 sequence-2 dashboard.report=both.html",
        ),
        ("run", "dashboard", "serve"),
        max_configs=6,
        default_config="sequence",
        word="RUN",
    ),
    "export": Command(
        "experiments.commands.export:main",
        "write a bundle for other programs: StableHLO of its network and search, ONNX, int8",
        (
            "jaxgames export sequence/az export.out=az",
            "jaxgames export runs/first 'export.formats=[onnx,int8]' --json",
        ),
        ("seed", "device", "export"),
        default_config="sequence",
        word="BUNDLE",
    ),
    "plot": Command(
        "experiments.commands.plot:main",
        "pictures of runs and positions as SVG or PNG; without a RUN it lists the kinds",
        (
            "jaxgames plot sequence-1 'plot.kinds=[losses,winrate]' plot.format=png",
            "jaxgames plot plot.record=game.json 'plot.kinds=[policy,tree]' plot.ply=20",
        ),
        ("run", "plot", "seed"),
        max_configs=6,
        default_config="sequence",
        word="RUN",
    ),
    "replay": Command(
        "experiments.commands.replay:main",
        "show a recorded game move by move, or one of its positions as a picture",
        (
            "jaxgames replay game.json",
            "jaxgames replay games.jsonl replay.game=2 replay.ply=20 replay.out=board.svg",
        ),
        ("replay",),
        default_config="sequence",
        word="RECORD",
    ),
    "doctor": Command(
        "experiments.commands.doctor:main",
        "check devices, versions, compilation and write access",
        ("jaxgames doctor", "jaxgames doctor run.dir=/data/runs --json"),
        ("device", "run"),
        max_configs=0,
    ),
}

_FLAGS = {
    "--help": "this text",
    "--version": "the version",
    "--print-config": "the resolved settings with the origin of each value; runs nothing",
    "--json": "the result as JSON on stdout",
    "--quiet": "no progress",
    "--json-logs": "progress as JSON lines on stderr",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line; returns its exit code (product: 2.2)."""
    argv = list(sys.argv[1:] if argv is None else argv)
    try:
        return _dispatch(argv)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return errors.FAILED
    except (Exception, KeyboardInterrupt) as error:
        code = errors.exit_code(error)
        if code is None:
            raise
        _report(error, code, "--json-logs" in argv)
        return code


def _dispatch(argv: list[str]) -> int:
    words = [a for a in argv if not a.startswith("--")]
    flags = [a for a in argv if a.startswith("--")]
    for flag in flags:
        if flag not in _FLAGS:
            raise errors.UsageError(f"unknown flag {flag}{_nearest(flag, _FLAGS)}")
    if "--version" in flags:
        print(f"jaxgames {_version()}")
        return errors.DONE
    if not words:
        print(_overview())
        return errors.DONE if "--help" in flags else errors.USAGE
    name = words[0]
    if name not in COMMANDS:
        raise errors.UsageError(f"unknown command {name!r}{_nearest(name, COMMANDS)}")
    if "--help" in flags:
        print(_command_help(name))
        return errors.DONE
    call = _call(name, words[1:], flags)
    if call.flags.print_config:
        from experiments.commands.configs import show

        show(call.resolved, call.flags)
        return errors.DONE
    module, _, function = COMMANDS[name].target.partition(":")
    return getattr(importlib.import_module(module), function)(call)


def _call(name: str, words: list[str], flags: list[str]) -> Call:
    command = COMMANDS[name]
    plain = [w for w in words if not _is_override(w)]
    subject = ""
    if command.subjects:
        if not plain or plain[0] not in command.subjects:
            known = "|".join(command.subjects)
            got = _nearest(plain[0], command.subjects) if plain else ""
            raise errors.UsageError(f"{name}: say {known} first{got}")
        subject = plain.pop(0)
    if len(plain) > command.max_configs:
        raise errors.UsageError(
            f"{name}: {plain[command.max_configs]!r} is one word too many; settings are key=value"
        )
    return Call(
        command=name,
        subject=subject,
        configs=tuple(plain),
        overrides=tuple(w for w in words if _is_override(w)),
        flags=Flags(
            json="--json" in flags,
            quiet="--quiet" in flags,
            json_logs="--json-logs" in flags,
            print_config="--print-config" in flags,
        ),
    )


def _is_override(word: str) -> bool:
    return "=" in word or word[:1] in ("+", "~", "-") or word.startswith("hydra")


def _report(error: BaseException, code: int, as_json: bool) -> None:
    message = str(error) or ("interrupted" if code == errors.INTERRUPTED else type(error).__name__)
    if as_json:
        row = {"error": type(error).__name__, "code": code, "message": message}
        if getattr(error, "key", None):
            row["key"] = error.key
        print(json.dumps(row), file=sys.stderr)
    else:
        print(f"jaxgames: {message}", file=sys.stderr)


def _nearest(name: str, known) -> str:
    close = difflib.get_close_matches(name, list(known), n=3, cutoff=0.6)
    return f"; did you mean {' or '.join(close)}?" if close else f"; known: {', '.join(known)}"


def _version() -> str:
    from importlib import metadata

    return metadata.version("jaxgames")


def _overview() -> str:
    lines = ["jaxgames COMMAND [CONFIG] [key.sub=value ...]", "", "Commands:"]
    lines += [f"  {name:10} {command.summary}" for name, command in COMMANDS.items()]
    lines += ["", "Flags:"] + [f"  {flag:15} {text}" for flag, text in _FLAGS.items()]
    lines += [
        "",
        "Examples:",
        "  jaxgames train sequence",
        "  jaxgames train sequence run.name=second seed=2 alphazero.learning_rate=1e-3",
        "",
        "`jaxgames configs list` names the presets, `jaxgames COMMAND --help` shows more.",
    ]
    return "\n".join(lines)


def _command_help(name: str) -> str:
    command = COMMANDS[name]
    subject = f" {'|'.join(command.subjects)}" if command.subjects else ""
    config = f" [{command.word}]" * command.max_configs
    lines = [f"jaxgames {name}{subject}{config} [key.sub=value ...]", "", command.summary, ""]
    lines += ["Examples:"] + [f"  {example}" for example in command.examples]
    if command.sections:
        lines += ["", f"Settings it reads: {', '.join(command.sections)}."]
        lines += [
            f"See them all: jaxgames {name} {command.subjects[0] if subject else ''}"
            f"{' CONFIG' if config else ''} --print-config".replace("  ", " ")
        ]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
