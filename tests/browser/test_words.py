"""The words of the play page: the same in both languages, and none that is missing."""

import dataclasses
import pathlib
import re

import pytest

import experiments
from experiments.serve import problems
from jaxgames import core
from jaxgames.guandan import reading, rules
from jaxgames.guandan.page import STAGES

WEB = pathlib.Path(experiments.__file__).parent / "web"
GAMES = ("sequence", "guandan", "eight_in_a_row")
TABLES = {"i18n.js", "words.js"}
_LINE = re.compile(r'^  "([a-z0-9_]+\.[\w.]+)":\s+"((?:[^"\\]|\\.)+)",$')


def table(name: str) -> dict[str, dict[str, str]]:
    """Language -> key -> text of a file of words, one line each."""
    found: dict[str, dict[str, str]] = {}
    for line in (WEB / name).read_text("utf-8").splitlines():
        if begins := re.match(r"const (en|zh) = \{$", line):
            words = found.setdefault(begins[1], {})
        elif entry := _LINE.match(line):
            assert entry[1] not in words, f"{name}: {entry[1]} twice"
            words[entry[1]] = entry[2]
        else:
            assert not re.match(r'^\s+"', line), f"{name}: not read: {line}"
    return found


def words(language: str) -> dict[str, str]:
    return {k: v for name in sorted(TABLES) for k, v in table(name)[language].items()}


def scripts() -> list[pathlib.Path]:
    """What asks for words of these tables."""
    paths = [p for p in WEB.rglob("*.js") if "vendor" not in p.parts and p.name not in TABLES]
    return sorted(p for p in paths if not p.name.startswith("dashboard"))


def asked(text: str) -> tuple[set[str], set[str]]:
    """(keys, beginnings of keys that are put together) in a script."""
    namespaces = "|".join(sorted({key.split(".")[0] for key in words("en")}))
    keys = set(re.findall(rf'["\']((?:{namespaces})\.[a-z_0-9.A-Z]*[a-zA-Z0-9])["\']', text))
    begun = set(re.findall(rf"`((?:{namespaces})\.[a-z_.]*)\$\{{", text))
    return keys, begun


@pytest.mark.parametrize("name", sorted(TABLES))
def test_both_languages_have_the_same_words(name):
    found = table(name)
    assert set(found) == {"en", "zh"} and len(found["en"]) > 20
    assert found["en"].keys() == found["zh"].keys()


def test_no_key_is_in_two_files():
    seen: set[str] = set()
    for name in sorted(TABLES):
        keys = table(name)["en"].keys()
        assert not keys & seen
        seen |= keys


@pytest.mark.parametrize("name", sorted(TABLES))
def test_both_languages_fill_in_the_same_names(name):
    found = table(name)
    for key, text in found["en"].items():
        names = [set(re.findall(r"\{(\w+)\}", words[key])) for words in found.values()]
        assert names[1] <= names[0], f"{key}: {text}"


def test_no_word_is_missing():
    known, total = words("en"), 0
    for path in scripts():
        keys, begun = asked(path.read_text("utf-8"))
        total += len(keys)
        assert keys <= known.keys(), f"{path.name}: {sorted(keys - known.keys())}"
        for start in begun:
            assert any(key.startswith(start) for key in known), f"{path.name}: {start}"
    assert total > 100


def test_no_word_is_left_over():
    keys, begun = set(), set()
    for path in scripts():
        found = asked(path.read_text("utf-8"))
        keys |= found[0]
        begun |= found[1]
    left = [k for k in words("en") if k not in keys and not k.startswith(tuple(begun))]
    assert left == []


def rules_of(game):
    return core.game_type(game).rules_type


def test_what_the_games_name_has_words():
    known = words("en")
    families = {
        "type": reading.TYPES,
        "profile": rules.PROFILES,
        "suit": "SHCD",
        "place": "0123",
        "heat": ("policy", "visits", "q"),
        "option": [field.name for game in GAMES for field in dataclasses.fields(rules_of(game))],
        "value": ("true", "false"),
        "problem": [*problems.CODES, "told"],
        "guandan.do": STAGES.values(),
        "guandan.to": [stage for stage in STAGES.values() if stage != "play"],
    }
    for family, names in families.items():
        join = "_" if family.startswith("guandan") else "."
        for name in names:
            assert f"{family}{join}{name}" in known


def test_the_reader_of_scripts_sees():
    keys, begun = asked('t("board.wait"); t(x ? "type.Bomb" : y); t(`type.${x}`); "./a.js"')
    assert keys == {"board.wait", "type.Bomb"} and begun == {"type."}
