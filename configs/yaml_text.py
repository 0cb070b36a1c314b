"""YAML from anywhere: what is refused before a reader builds anything from it."""

from __future__ import annotations

import yaml

#: Characters of a file, and how deep its parts lie in each other.
MAX_CHARACTERS, MAX_DEPTH = 1 << 16, 16


def check(text: str) -> str:
    """`text`, if reading it is harmless; raises ValueError with one sentence.

    Refused are aliases, of which a few lines can stand for more than a machine holds, tags, text
    that is too long or too deep, and what is no YAML.
    """
    if len(text) > MAX_CHARACTERS:
        raise ValueError(f"at most {MAX_CHARACTERS} characters, got {len(text)}")
    depth = 0
    try:
        for event in yaml.parse(text, yaml.SafeLoader):
            line = event.start_mark.line + 1
            if isinstance(event, yaml.AliasEvent):
                raise ValueError(f"line {line}: aliases (*{event.anchor}) are not taken")
            if getattr(event, "tag", None):
                raise ValueError(f"line {line}: tags ({event.tag}) are not taken")
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            if depth > MAX_DEPTH:
                raise ValueError(f"line {line}: nested deeper than {MAX_DEPTH}")
    except yaml.YAMLError as error:
        raise ValueError(str(error).splitlines()[0] if str(error) else "no YAML") from None
    return text
