"""`jaxgames configs list|show|diff`."""

from __future__ import annotations

import json

import configs
from experiments import errors


def main(call) -> int:
    if call.subject == "list":
        names = configs.presets()
        print(json.dumps(names) if call.flags.json else "\n".join(names))
    elif call.subject == "show":
        if len(call.configs) > 1:
            raise errors.UsageError("configs show: takes one CONFIG")
        show(call.resolved, call.flags)
    else:
        if len(call.configs) != 2:
            raise errors.UsageError("configs diff: takes two CONFIGs")
        diff(*(configs.load(name, call.overrides) for name in call.configs), call)
    return errors.DONE


def show(resolved: configs.Resolved, flags) -> None:
    """Print every setting with where its value comes from."""
    flat = resolved.flat()
    if flags.json:
        rows = {k: {"value": v, "origin": resolved.origins[k]} for k, v in flat.items()}
        print(json.dumps(rows, ensure_ascii=False))
        return
    texts = {k: f"{k} = {_text(v)}" for k, v in flat.items()}
    width = min(max(map(len, texts.values())), 60)
    for key, text in texts.items():
        print(f"{text:{width}}  # {resolved.origins[key]}")


def diff(left: configs.Resolved, right: configs.Resolved, call) -> None:
    """Print the settings in which two presets differ."""
    a, b = left.flat(), right.flat()
    keys = [k for k in a | b if a.get(k) != b.get(k)]
    if call.flags.json:
        print(json.dumps({k: [a.get(k), b.get(k)] for k in keys}, ensure_ascii=False))
        return
    for key in keys:
        print(f"{key}: {_text(a.get(key))} -> {_text(b.get(key))}")


def _text(value) -> str:
    return json.dumps(value, ensure_ascii=False)
