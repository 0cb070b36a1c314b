"""What README.md says is so."""

import pathlib
import re
import shlex

import jax

import jaxgames
from experiments import cli, readme_tables

PAGE = (pathlib.Path(__file__).parents[1] / "README.md").read_text("utf-8")
HOME = pathlib.Path(jaxgames.__file__).parents[1]


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def test_python_runs(capsys):
    (program,) = blocks("python")
    assert len(program.strip().splitlines()) <= 14
    names = {}
    exec(compile(program, "README.md", "exec"), names)
    assert bool(names["state"].done) and not bool(names["state"].illegal)
    assert "rewards by seat:" in capsys.readouterr().out
    assert jax.numpy.abs(names["state"].rewards).max() <= 1


def test_commands_are_valid():
    lines = [line for block in blocks("console") for line in block.splitlines()]
    ours = [line for line in lines if line.startswith("jaxgames ")]
    assert len(ours) >= 6
    for line in ours:
        name, *words = shlex.split(line)[1:]
        call = cli._call(name, [w for w in words if w[:2] != "--"], [])
        if "run.resume=true" not in words and cli.COMMANDS[name].sections and name != "doctor":
            assert call.resolved.config.game.name in line


def test_two_set_up_commands():
    train, tests = (b.strip() for b in blocks("console")[:2])
    for line in (train, tests):
        assert "\n" not in line and line.startswith(
            "python3 -m venv .venv && .venv/bin/pip install "
        )
    assert train.endswith(".venv/bin/jaxgames train sequence")
    assert tests.endswith("'.[test]' && .venv/bin/python -m pytest -n 2")


def test_links_lead_somewhere():
    links = [t for t in re.findall(r"\]\(([^)#]+)\)", PAGE) if "://" not in t]
    assert len(links) >= 1
    for link in links:
        assert (HOME / link).is_file(), link


def test_tables_are_those_of_the_code():
    assert readme_tables.render(PAGE) == PAGE, "run python -m experiments.readme_tables"


def test_exit_codes_are_those_of_the_code():
    from experiments import errors

    listed = {int(n) for n in re.findall(r"^\| (\d+) \|", PAGE, re.MULTILINE)}
    codes = {errors.DONE, errors.FAILED, errors.USAGE, errors.GATE, errors.NUMERICS}
    assert listed == codes | {errors.INTERRUPTED}


def test_table_marks(tmp_path):
    page = PAGE.replace("<!-- speed -->", "")
    try:
        readme_tables.render(page)
    except ValueError as error:
        assert "no place for the table 'speed'" in str(error)
    else:
        raise AssertionError("a missing mark went unnoticed")


def test_result_rows(tmp_path, monkeypatch):
    monkeypatch.setattr(readme_tables, "RESULTS", tmp_path)
    assert readme_tables.results() == "None yet.\n"
    (tmp_path / "a.json").write_text(
        '{"game": {"id": "sequence"}, "agent": "x", "opponent": "greedy", "games": 1000,'
        ' "winrate": {"mean": 0.625, "low": 0.594, "high": 0.655}, "command": "jaxgames e"}'
    )
    (tmp_path / "b.json").write_text(
        '{"benchmark": "env", "command": "jaxgames b",'
        ' "rows": [{"what": "batch 256", "value": 1234567.8, "unit": "steps/s"}]}'
    )
    (tmp_path / "c.json").write_text(
        '{"agent": "x", "opponent": "y", "winrate": {}, "command": "jaxgames f", "forms": {'
        '"round": {"game": {"id": "guandan"}, "games": 20,'
        ' "winrate": {"mean": 0.5, "low": 0.3, "high": 0.7}},'
        '"match": {"game": {"id": "guandan"}, "games": 20,'
        ' "winrate": {"mean": 0.6, "low": 0.4, "high": 0.8}}}}'
    )
    for row in ("| guandan, round | x | y | 20 | 50.0 [30.0, 70.0] | `jaxgames f` |",
                "| guandan, match | x | y | 20 | 60.0 [40.0, 80.0] | `jaxgames f` |"):  # fmt: skip
        assert row in readme_tables.results()
    row = "| sequence | x | greedy | 1000 | 62.5 [59.4, 65.5] | `jaxgames e` |"
    assert row in readme_tables.results()
    assert "| env | batch 256 | 1,234,568 steps/s | `jaxgames b` |" in readme_tables.speed()
