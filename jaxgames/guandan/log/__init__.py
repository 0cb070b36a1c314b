"""Logs of Guandan matches, to the card: `jaxgames-guandan-log/1`.

One file per match, one JSON object per line, UTF-8. The first line is the header, every other
an event. Cards, types and ranks are the words of the wire (B2 of the rule book; the
joker bomb is always Bomb, JOKER), seats 0..3, teams 0 (seats 0 and 2) and 1, levels "2".."A".

    {"format":"jaxgames-guandan-log/1","profile":"national","seats":["a","b","c","d"],
     "unit":"match","seed":7,"versions":{"jaxgames":"0.1.0"},"levels":["2","2"],"owner":null,
     "previous":null,"fails":[0,0],"demotions":0,"rounds":0,"a_fail_limit":3,
     "max_rounds":100,"meta":{}}
    {"event":"deal","round":1,"levels":["2","2"],"owner":null,"level":"2","previous":null,
     "leader":3,"hands":[["S3",...27 cards],...]}
    {"event":"play","seat":3,"play":["Pair","9",["S9","C9"]]}
    {"event":"play","seat":0,"play":["PASS","PASS","PASS"]}
    {"event":"round-end","order":[3,1,0,2],"gained":3,"levels":["2","5"],"owner":1,
     "fails":[0,0],"demotions":0}
    {"event":"deal",...,"previous":[3,1,0,2],"leader":null,...}
    {"event":"tribute","seat":2,"card":"HR","to":1}          the higher-numbered payer first
    {"event":"return","seat":1,"card":"C4","to":2}           in the order of the payers
    {"event":"anti-tribute","seats":[2]}                     instead, when it is refused
    {"event":"match-end","winner":1,"reason":"passed"}

(Each is one line in the file.) Every field is there, and no other; `Header`, `Deal`, ... say
what they mean. A match that was broken off ends with the reason "stopped".

    log = LogBuilder("national", names, seed=7)    # then log.deal(...), log.move(...)
    write("match.jsonl", log.match)
    for match, clean, faults in check_all(read("folder")):
        for referee, event in positions(clean): ...     # every decision, everything known
"""

from jaxgames.guandan.log.build import LogBuilder
from jaxgames.guandan.log.check import KINDS, REJECTS, REPAIRS, check, check_all, digest
from jaxgames.guandan.log.events import (
    FORMAT,
    VERSION,
    AntiTribute,
    Breach,
    Deal,
    Event,
    Fault,
    Header,
    MatchEnd,
    MatchLog,
    Return,
    RoundEnd,
    Tribute,
    Turn,
    dumps,
)
from jaxgames.guandan.log.positions import positions
from jaxgames.guandan.log.record import Writer, files, read, write
from jaxgames.guandan.log.referee import Referee

__all__ = [
    "FORMAT", "KINDS", "REJECTS", "REPAIRS", "VERSION", "AntiTribute", "Breach", "Deal", "Event",
    "Fault", "Header", "LogBuilder", "MatchEnd", "MatchLog", "Referee", "Return", "RoundEnd",
    "Tribute", "Turn", "Writer", "check", "check_all", "digest", "dumps", "files", "positions",
    "read", "write",
]  # fmt: skip
