"""One HTML file with the data inside: the page itself, its script and style, and what it would
have asked the server for. It opens from disk, with no server and no network."""

from __future__ import annotations

import base64
import hashlib
import pathlib
import re
import time
from collections.abc import Sequence
from typing import Any

from pydantic_core import to_json

from experiments.dashboard import panels
from experiments.dashboard.run import Run, names_of

WEB = pathlib.Path(__file__).resolve().parents[1] / "web"
#: In the order in which they need each other; each is an ES module of the page.
SCRIPTS = (
    "ink.js",
    "dashboard_texts.js",
    "dashboard_data.js",
    "dashboard_charts.js",
    "dashboard_tables.js",
    "dashboard.js",
)
STYLES = ("vendor/uplot/uPlot.min.css", "dashboard.css")
LIBRARY = "vendor/uplot/uPlot.iife.min.js"
#: Runs in a report, games in it, and pictures of each game.
MOST_RUNS, GAMES, FRAMES = 6, 2, 60


def render(runs: Sequence[Run]) -> str:
    """The report of up to six runs."""
    answers: dict[str, Any] = {
        "/v1/runs": {
            "runs": [run.header() for run in runs],
            "chosen": [run.id for run in runs],
            "panels": panels.to_json(),
            "now": time.time(),
        }
    }
    for run in runs[:MOST_RUNS]:
        base = f"/v1/runs/{run.id}"
        table = run.series(wait=True)
        answers |= {
            base: {**run.summary(), "now": time.time()},
            f"{base}/series": {**table, "meaning": names_of(table)},
            f"{base}/log": run.log(),
            f"{base}/settings": run.settings(),
            f"{base}/evaluation": run.evaluation(),
            f"{base}/league": run.league(),
            f"{base}/games": {"games": []},
        }
        answers |= _games(run, base)
    return page(answers)


def _games(run: Run, base: str) -> dict[str, Any]:
    """The newest games with pictures of some plies, as data addresses."""
    answers: dict[str, Any] = {}
    shown = []
    for about in run.boards.list()[:GAMES]:
        try:
            told = run.boards.moves(about["id"])
            plies = len(told["moves"])
            every = max(-(-plies // FRAMES), 1)
            for ply in sorted({*range(0, plies + 1, every), plies}):
                svg = run.boards.draw(about["id"], ply).encode()
                address = f"data:image/svg+xml;base64,{base64.b64encode(svg).decode()}"
                answers[f"{base}/games/{about['id']}/{ply}.svg"] = address
        except (KeyError, ValueError):  # a record that does not hold has no picture
            continue
        answers[f"{base}/games/{about['id']}"] = {**told, "every": every}
        shown.append(about)
    answers[f"{base}/games"] = {"games": shown}
    return answers


def page(answers: dict[str, Any]) -> str:
    """dashboard.html with everything it links to inside, and `answers` by address."""
    html = (WEB / "dashboard.html").read_text("utf-8")
    style = "\n".join((WEB / name).read_text("utf-8") for name in STYLES)
    library = (WEB / LIBRARY).read_text("utf-8")
    program = "\n".join(_as_script((WEB / name).read_text("utf-8")) for name in SCRIPTS)
    program = f"(() => {{\n{program}\n}})();"
    # Inside a script element "<" could end it or open a comment: data has none.
    data = to_json(answers, inf_nan_mode="null", fallback=str).decode().replace("<", "\\u003c")
    for name, text in {"library": library, "program": program}.items():
        if re.search(r"</script|<!--", text, re.IGNORECASE):
            raise ValueError(f"{name}: can not stand in a page")
    allowed = " ".join(f"'sha256-{_hash(text)}'" for text in (library, program))
    policy = (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    head = (
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n<style>{style}</style>\n'
    )
    body = (
        f'<script type="application/json" id="answers">{data}</script>\n'
        f"<script>{library}</script>\n<script>{program}</script>\n"
    )
    html = re.sub(r"[ \t]*<(?:link|script)\b[^>]*>(?:</script>)?\n", "", html)
    before, _, after = html.partition("</head>")
    html = f"{before}{head}</head>{after}"
    before, _, after = html.rpartition("</body>")
    return f"{before}{body}</body>{after}"


def _as_script(text: str) -> str:
    """A module as a part of one script: its imports are there already, its names are shared."""
    text = re.sub(r"^import .*?;\n", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"^export (?=(?:async )?(?:function|const|class) )", "", text, flags=re.MULTILINE)


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
