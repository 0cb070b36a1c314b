"""Who may call, from where."""

import asyncio
import json
import os
import stat

import pytest

from configs import ConfigError
from experiments.serve import security
from tests.experiments.serve import tiny
from tests.experiments.serve.tiny import AT, call, post, problem


@pytest.fixture(scope="module")
def app():
    return tiny.served()


MOVE = AT | {"moves": ["b2"]}


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:8000", "127.0.0.1.evil.example", "localhost@evil", "", "a/b"],
)
def test_other_names_for_this_machine_are_refused(app, host):
    for path in ("/v1/models", "/health/live", "/"):
        problem(call(app, "GET", path, headers={"host": host}), 403, "forbidden", "host")


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "127.0.0.1:80", "[::1]:9"])
def test_names_of_loopback(app, host):
    assert call(app, "GET", "/v1/models", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "origin",
    ["http://evil.example", "null", "http://localhost:9", "https://127.0.0.1.evil", "file://"],
)
def test_pages_of_others_change_nothing(app, origin):
    problem(post(app, "/v1/move", MOVE, headers={"origin": origin}), 403, "forbidden", "origin")
    stream = {"origin": origin, "accept": "text/event-stream"}
    problem(call(app, "GET", "/v1/models", headers=stream), 403, "forbidden", "origin")


def test_sites_that_browsers_name(app):
    cross = {"sec-fetch-site": "cross-site"}
    problem(post(app, "/v1/move", MOVE, headers=cross), 403, "forbidden", "origin")
    own = {"origin": "http://127.0.0.1:8000", "sec-fetch-site": "same-origin"}
    assert post(app, "/v1/move", MOVE, headers=own).status_code == 200


def test_headers_of_every_answer(app):
    for told in (
        call(app, "GET", "/v1/models"),
        call(app, "GET", "/nothing"),
        post(app, "/v1/move", {}),
    ):
        policy = told.headers["content-security-policy"]
        assert policy.startswith("default-src 'self';") and "frame-ancestors 'none'" in policy
        assert told.headers["x-content-type-options"] == "nosniff"
        assert "access-control-allow-origin" not in told.headers
    assert call(app, "GET", "/v1/models").headers["cache-control"] == "no-store"


def fenced(tmp_path, **changes):
    """An application that is not started: only its fences are asked."""
    changes = {"token_file": str(tmp_path / "token.json")} | changes
    return tiny.apps.build(tiny.settings(**changes))


def test_origins_that_are_let_in(tmp_path):
    app = fenced(tmp_path, cors=("https://lab.example",), frame_ancestors=("https://lab.example",))
    asked = {"origin": "https://lab.example"}
    told = call(app, "GET", "/v1/models", headers=asked)
    assert told.headers["access-control-allow-origin"] == "https://lab.example"
    assert "access-control-allow-credentials" not in told.headers
    assert "frame-ancestors https://lab.example" in told.headers["content-security-policy"]
    before = asked | {"access-control-request-method": "POST"}
    assert call(app, "OPTIONS", "/v1/move", headers=before).status_code == 204
    problem(post(app, "/v1/move", MOVE, headers=asked), 503, "not_ready")
    other = call(app, "GET", "/v1/models", headers={"origin": "https://other.example"})
    assert "access-control-allow-origin" not in other.headers


def test_beyond_loopback_a_token_is_needed(tmp_path):
    path = tmp_path / "token.json"
    app = fenced(tmp_path, host="0.0.0.0")
    keys = app.state.keys
    assert keys.fresh and stat.S_IMODE(path.stat().st_mode) == 0o600
    told = json.loads(path.read_text())
    assert told == {"play": keys.play, "read": keys.read} and len(keys.play) >= 40
    for path_ in ("/v1/models", "/metrics", "/api/status", "/openapi.json"):
        problem(call(app, "GET", path_), 401, "unauthorized")
    for token in ("", "x", keys.play[:-1], keys.play + "x", "\u00e9"):
        bearer = {"authorization": f"Bearer {token}".encode()}
        problem(call(app, "GET", "/v1/models", headers=bearer), 401, "unauthorized")
    play, read = ({"authorization": f"Bearer {t}"} for t in (keys.play, keys.read))
    assert call(app, "GET", "/v1/models", headers=play).status_code == 200
    assert call(app, "GET", "/v1/models", headers=read).status_code == 200
    problem(post(app, "/v1/move", MOVE, headers=read), 403, "forbidden")
    problem(post(app, "/v1/move", MOVE, headers=play), 503, "not_ready")
    assert call(app, "GET", "/health/live").status_code == 200
    again = fenced(tmp_path, host="0.0.0.0").state.keys
    assert (again.play, again.fresh) == (keys.play, False)


def test_reading_changes_no_table(tmp_path):
    """To look at all hands ends that moves are taken back: not for who may only read."""
    app = fenced(tmp_path, host="0.0.0.0")
    keys = app.state.keys
    play, read = ({"authorization": f"Bearer {t}"} for t in (keys.play, keys.read))
    body = {"game": "sequence", "seats": [{"kind": "human"}] * 2}
    path = f"/v1/tables/{post(app, '/v1/tables', body, headers=play).json()['id']}"
    body = {"viewer": "0", "seat": 0}
    assert post(app, f"{path}/resign", body, headers=play).json()["open"]
    before = call(app, "GET", path, headers=read).json()
    for what in ("?viewer=all", "/text?viewer=all", "/record"):
        told = problem(call(app, "GET", path + what, headers=read), 403, "forbidden")
        assert "may only read" in told["detail"]
    assert call(app, "GET", path, headers=read).json() == before
    assert call(app, "GET", f"{path}/record", headers=play).status_code == 200
    assert call(app, "GET", f"{path}?viewer=all", headers=read).status_code == 200  # it is open


def test_a_body_that_is_too_large_is_taken_in_before_it_is_refused():
    """Who is cut off while he sends does not get to read why."""
    taken, sent = [], []

    async def receive():
        taken.append(1)
        return {"type": "http.request", "body": b" " * (1 << 18), "more_body": len(taken) < last}

    async def send(message):
        sent.append(message)

    for length, last, more in ((b"1310720", 5, {}), (b"99999999", 10**6, {}), (b"9", 8, {}),
                               (b"1310720", 5, {b"expect": b"100-continue"})):  # fmt: skip
        headers = {b"content-length": length, b"content-type": b"application/json", **more}
        scope = {
            "type": "http",
            "method": "POST",
            "path": "/v1/move",
            "headers": [*headers.items()],
        }
        taken.clear()
        asyncio.run(security.Gate(None)(scope, receive, send))
        most = security.LINGER_BYTES >> 18
        assert len(taken) == (0 if more else min(last, most))
        assert sent[-2]["status"] == 413


def test_a_page_swaps_its_code_once_for_a_cookie(tmp_path):
    app = fenced(tmp_path, host="0.0.0.0")
    code = {"authorization": f"Bearer {app.state.keys.code}"}
    told = call(app, "POST", "/v1/session", headers=code)
    cookie = told.headers["set-cookie"]
    assert told.status_code == 204 and "HttpOnly" in cookie and "SameSite=strict" in cookie
    assert app.state.keys.play not in cookie
    assert cookie.startswith("jaxgames-8000=")  # another server of this host has another port
    held = {"cookie": cookie.split(";")[0]}
    assert call(app, "GET", "/v1/models", headers=held).status_code == 200
    problem(post(app, "/v1/move", MOVE, headers=held), 503, "not_ready")
    problem(call(app, "POST", "/v1/session", headers=code), 401, "unauthorized")
    problem(call(app, "POST", "/v1/session"), 401, "unauthorized")
    wrong = {"cookie": "jaxgames-8000=x"}
    problem(call(app, "GET", "/v1/models", headers=wrong), 401, "unauthorized")
    evil = held | {"origin": "http://evil.example"}
    problem(post(app, "/v1/move", MOVE, headers=evil), 403, "forbidden", "origin")


def test_addresses_are_known_where_all_are_listened_on(tmp_path):
    app = fenced(tmp_path, host="0.0.0.0", allowed_hosts=("box.example",), insecure_no_auth=True)
    for host, status in (("10.0.0.7:80", 200), ("box.example", 200), ("other.example", 403)):
        assert call(app, "GET", "/v1/models", headers={"host": host}).status_code == status


def test_token_files_that_are_none(tmp_path):
    path = tmp_path / "token.json"
    path.write_text('{"play": "short", "read": "short"}')
    os.chmod(path, 0o600)
    with pytest.raises(ConfigError, match="serve.token_file: .* holds no tokens"):
        fenced(tmp_path, host="0.0.0.0")
    os.chmod(path, 0o644)
    with pytest.raises(ConfigError, match="may be read by others"):
        fenced(tmp_path, host="0.0.0.0")


def test_loopback_is_told_from_other_addresses():
    for host in ("127.0.0.1", "127.3.2.1", "::1", "localhost"):
        assert security.is_loopback(host)
    for host in ("0.0.0.0", "::", "10.0.0.1", "box.example"):
        assert not security.is_loopback(host)


def test_bodies_are_counted_as_they_come(app):
    async def main():
        sent = 0

        async def chunks():
            nonlocal sent
            while sent < 50_000_000:
                sent += 1 << 16
                yield b" " * (1 << 16)

        async with tiny.client(app) as http:
            kind = {"content-type": "application/json"}
            return await http.post("/v1/move", content=chunks(), headers=kind), sent

    told, sent = asyncio.run(main())
    problem(told, 413, "too_large")
    assert sent < (1 << 20) + security.LINGER_BYTES + (1 << 18)
