"""Messages: the platform's own samples to the letter, and whatever else may come."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxgames.guandan.exact import PASS_PLAY, Play
from jaxgames.guandan.wire import protocol
from jaxgames.guandan.wire.protocol import Fields, TableView, WireError

PASS = ["PASS", "PASS", "PASS"]
LEVELS = {"5": 3, "6": 4, "8": 6}


def test_notify_samples():
    view = TableView()
    view.moved(1, ["Pair", "9", ["S9", "C9"]])
    after_play = protocol.played(view)
    view.moved(2, PASS)
    messages = [
        protocol.beginning(["S3", "D3", "HR"], 2),
        after_play,
        protocol.played(view),
        protocol.tributes([(3, 0, "SB"), (1, 2, "CA")]),
        protocol.anti_tribute([2]),
        protocol.tributes([(0, 3, "C4"), (2, 1, "D7")], "back"),
        protocol.episode_over(LEVELS["6"], [2, 0, 1, 3], {1: ["H4", "CJ"], 3: ["S8"], 0: []}),
        protocol.game_over(3, 3),
        protocol.game_result([1, 2, 1, 2], [0] * 4),
    ]
    assert [protocol.encode(message) for message in messages] == [
        '{"type":"notify","handCards":["S3","D3","HR"],"stage":"beginning","myPos":2}',
        '{"type":"notify","stage":"play","curPos":1,"curAction":["Pair","9",["S9","C9"]],'
        '"greaterPos":1,"greaterAction":["Pair","9",["S9","C9"]]}',
        '{"type":"notify","stage":"play","curPos":2,"curAction":["PASS","PASS","PASS"],'
        '"greaterPos":1,"greaterAction":["Pair","9",["S9","C9"]]}',
        '{"type":"notify","stage":"tribute","result":[[3,0,"SB"],[1,2,"CA"]]}',
        '{"type":"notify","stage":"anti-tribute","antiNums":1,"antiPos":[2]}',
        '{"type":"notify","stage":"back","result":[[0,3,"C4"],[2,1,"D7"]]}',
        '{"type":"notify","stage":"episodeOver","curRank":"6","order":[2,0,1,3],'
        '"restCards":[[1,["H4","CJ"]],[3,["S8"]]]}',
        '{"type":"notify","stage":"gameOver","curTimes":3,"settingTimes":3}',
        '{"type":"notify","stage":"gameResult","victoryNum":[1,2,1,2],"draws":[0,0,0,0]}',
    ]


def test_act_samples():
    view = TableView()
    view.moved(3, PASS)
    view.moved(0, PASS)
    view.moved(1, ["Single", "T", ["ST"]])
    view.areas[3] = PASS
    view.asked(2, leads=False)
    options = [PASS, ["Single", "K", ["HK"]]]
    hand, levels = ["C4", "D4", "HK"], (LEVELS["5"], LEVELS["8"], LEVELS["8"])
    message = protocol.act("play", hand, [9, 4, 3, 11], levels, view, options)
    assert protocol.encode(message) == (
        '{"type":"act","handCards":["C4","D4","HK"],"publicInfo":['
        '{"rest":9,"playArea":["PASS","PASS","PASS"]},'
        '{"rest":4,"playArea":["Single","T",["ST"]]},'
        '{"rest":3,"playArea":null},'
        '{"rest":11,"playArea":["PASS","PASS","PASS"]}],'
        '"selfRank":"5","oppoRank":"8","curRank":"8","stage":"play","curPos":1,'
        '"curAction":["Single","T",["ST"]],"greaterAction":["Single","T",["ST"]],'
        '"greaterPos":1,"actionList":[["PASS","PASS","PASS"],["Single","K",["HK"]]],'
        '"indexRange":1}'
    )
    first = TableView()
    first.asked(0, leads=True)
    message = protocol.act("tribute", hand, [27] * 4, levels, first, [["tribute"] * 2 + [["S8"]]])
    assert list(message)[6:] == [
        "stage", "curPos", "curAction", "greaterAction", "greaterPos", "actionList", "indexRange",
    ]  # fmt: skip
    assert (message["curPos"], message["greaterPos"]) == (-1, -1)
    assert message["curAction"] == message["greaterAction"] == [None, None, None]
    assert [row["playArea"] for row in message["publicInfo"]] == [None] * 4


def test_a_seat_that_is_asked_again_has_an_empty_area():
    view = TableView()
    view.moved(0, ["Single", "3", ["S3"]])
    view.moved(1, PASS)
    view.asked(0, leads=True)
    assert view.areas == [[None] * 3, PASS, None, None]
    assert (view.last, view.best) == ((-1, [None] * 3), (-1, [None] * 3))


def test_levels_in_the_beginning_are_numbers():
    message = protocol.beginning([], 0, (0, 8, 12))
    assert list(message)[:4] == ["type", "handCards", "stage", "myPos"]
    assert (message["curRank"], message["selfRank"], message["oppoRank"]) == (2, 10, 14)


# ---- reading ----


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (["Single", "8", ["C8"]], Play("Single", "8", ("C8",))),
        ("['Single', '8', ['C8']]", Play("Single", "8", ("C8",))),
        ("['PASS', 'PASS', 'PASS']", PASS_PLAY),
        (PASS, PASS_PLAY),
        ("PASS", PASS_PLAY),
        (None, None),
        ([None, None, None], None),
        ("[None, None, None]", None),
        ("None", None),
        ([], None),
    ],
)
def test_actions_of_both_dialects(value, found):
    assert protocol.action(value) == found


@pytest.mark.parametrize(
    "value",
    [
        "__import__('os').getcwd()",
        "[x for x in 'ab']",
        "['Single', '8'",
        "[" * 200,
        "(" * 3000,
        "['Single', '8', ['C1']]",
        ["Single", "8", ["C8", "C8", "C8"]],
        ["Single", 8, ["C8"]],
        ["Single", "8"],
        {"actIndex": 3},
        7,
        "9" * 5000,
        "'" * 9,
    ],
)
def test_what_is_no_action_is_said(value):
    with pytest.raises(WireError, match="^curAction: "):
        protocol.action(value, "curAction")


@pytest.mark.parametrize(
    ("value", "level"), [("2", 0), ("T", 8), ("10", 8), ("A", 12), (2, 0), (11, 9), (14, 12)]
)
def test_levels_are_texts_or_numbers(value, level):
    assert Fields({"curRank": value}).level("curRank") == level


@pytest.mark.parametrize("value", ["1x", "", "B", 0, 15, 2.0, True, [], 10**30])
def test_odd_levels_are_said(value):
    with pytest.raises(WireError, match="^curRank: a level 2 to 9"):
        Fields({"curRank": value}).level("curRank")


def test_either_spelling_and_swapped_keys():
    assert Fields({"antiNum": 2}).get("antiNums", "antiNum") == 2
    assert Fields({"greaterPos": [None] * 3}).seat("greaterPos") is None
    assert Fields({"greaterPos": -1}).seat("greaterPos") is None
    assert Fields({}).seat("greaterPos") is None
    with pytest.raises(WireError, match="a seat 0 to 3, got 4"):
        Fields({"myPos": 4}).seat("myPos")


def test_actions_match_by_multiset():
    options = [PASS_PLAY, None, Play("ThreeWithTwo", "5", ("S5", "C5", "H5", "D9", "S9"))]
    options += [Play("Bomb", "JOKER", ("SB", "SB", "HR", "HR"))]
    turned = Play("ThreeWithTwo", "5", ("D9", "H5", "S9", "C5", "S5"))
    assert protocol.match_action(turned, options) == 2
    assert protocol.match_action(PASS_PLAY, options) == 0
    assert protocol.match_action(Play("FourKings", "B", ("HR", "HR", "SB", "SB")), options) == 3
    assert protocol.match_action(Play("Straight", "5", turned.cards), options) is None
    assert protocol.match_action(Play("ThreeWithTwo", "9", turned.cards), options) is None


@pytest.mark.parametrize("index", [0, 3])
def test_replies(index):
    assert protocol.parse_reply(protocol.reply(index), 3) == index
    assert protocol.parse_reply(b' {"actIndex": 1, "more": [1]} ', 3) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"actIndex": 4}', "0 to 3, got 4"),
        ('{"actIndex": -1}', "0 to 3, got -1"),
        ('{"actIndex": 1.0}', "a whole number, got 1.0"),
        ('{"actIndex": true}', "a whole number, got True"),
        ('{"actIndex": "1"}', "a whole number, got '1'"),
        ('{"actIndex": null}', "a whole number, got None"),
        ('{"actIndex": NaN}', "no JSON"),
        ('{"actIndex": 1e999}', "a whole number, got inf"),
        ('{"actIndex": ' + "9" * 60 + "}", "0 to 3, got a huge number"),
        ('{"actIndex": ' + "9" * 4000 + "}", "got a huge number"),
        ('{"actIndex": ' + "9" * 5000 + "}", "at most 4096 characters"),
        ('{"actindex": 1}', "missing"),
        ("[" * 2000, "nested deeper"),
        ('{"actIndex": [[[[[[[[[1]]]]]]]]]}', "nested deeper"),
        ("[1]", "missing"),
        ("1", "missing"),
        ("", "no JSON"),
        ('{"actIndex": 1', "no JSON"),
        (b"\xff\xfe\x00", "no UTF-8"),
        (b"\x00\x01", "no JSON"),
    ],
)
def test_bad_replies_are_said(text, message):
    with pytest.raises(WireError, match=message):
        protocol.parse_reply(text, 3)


def test_only_the_eleven_kinds_are_messages():
    for kind, stage in protocol.KINDS:
        assert protocol.parse_message(json.dumps({"type": kind, "stage": stage}))
    assert len(set(protocol.KINDS)) == 11
    for text in ('{"type":"act","stage":"beginning"}', '{"type":"act"}', "{}", "[]", '{"type":[]}'):
        with pytest.raises(WireError):
            protocol.parse_message(text)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)


@settings(deadline=None, max_examples=200)
@given(st.binary(max_size=64) | JSON.map(lambda value: json.dumps(value).encode()))
def test_any_bytes_are_read_or_refused(data):
    for read in (protocol.parse_message, lambda d: protocol.parse_reply(d, 5)):
        try:
            read(data)
        except WireError:
            pass


@settings(deadline=None, max_examples=200)
@given(JSON)
def test_any_field_is_read_or_refused(value):
    fields = Fields(dict.fromkeys(["curPos", "curAction", "order", "result", "x"], value))
    readers = (
        lambda: fields.seat("curPos"),
        lambda: fields.action("curAction"),
        lambda: fields.level("x"),
        lambda: fields.hand("x"),
        fields.order,
        fields.moves,
        lambda: fields.seats("x"),
        lambda: Fields({"publicInfo": value}).left(),
        lambda: Fields({"actionList": value}).options(),
    )
    for read in readers:
        try:
            read()
        except WireError:
            pass
