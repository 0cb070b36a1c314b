"""The notebooks: stored without outputs, alike in form, and each runs at tiny settings."""

import json
import os
import pathlib
import tempfile

import pytest

import experiments
from experiments import badges

PYPROJECT = pathlib.Path(__file__).parents[2] / "pyproject.toml"
HOME = pathlib.Path(experiments.__file__).parent / "notebooks"
NOTEBOOKS = sorted(path.name for path in HOME.glob("*.ipynb"))
#: The one that compiles least runs by default.
QUICK = "your_own_game.ipynb"


def cells(name, kind):
    notebook = json.loads((HOME / name).read_text("utf-8"))
    return ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == kind]


def test_there_are_five():
    assert len(NOTEBOOKS) == 5 and QUICK in NOTEBOOKS


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_form(name):
    notebook = json.loads((HOME / name).read_text("utf-8"))
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            assert cell["outputs"] == [] and cell["execution_count"] is None
            assert len("".join(cell["source"]).splitlines()) < 150
    texts, programs = cells(name, "markdown"), cells(name, "code")
    assert texts[0].startswith("# ") and f"/experiments/notebooks/{name})" in texts[0]
    assert "colab-badge.svg" in texts[0]
    assert "import jaxgames" in programs[0] and "%pip install" in programs[0]
    assert 'os.environ.get("JAXGAMES_TINY") == "1"' in programs[1]
    assert set(notebook["metadata"]) == {"kernelspec", "language_info"}


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_all_point_to_the_repository_that_the_project_names(name):
    text = (HOME / name).read_text("utf-8")
    assert badges.pointed(text, badges.source(PYPROJECT)) == text
    moved = badges.pointed(text, "somebody/a.fork-2")
    assert moved.count("somebody/a.fork-2") == 2 and "github.com/jaxgames" not in moved
    assert badges.pointed(moved, badges.source(PYPROJECT)) == text
    json.loads(moved)


def test_an_unknown_word_writes_nothing(monkeypatch, capsys):
    monkeypatch.setattr(badges, "NOTEBOOKS", None)  # nothing is looked at
    assert badges.main(["--chek"]) == badges.main(["--check", "x"]) == 2
    assert "nothing or --check, got '--chek'" in capsys.readouterr().err


def test_an_address_that_colab_can_not_open(tmp_path):
    path = tmp_path / "pyproject.toml"
    path.write_text('[project.urls]\nSource = "https://example.org/x"\n')
    with pytest.raises(ValueError, match="project.urls.Source: https://github.com/OWNER/NAME"):
        badges.source(path)


@pytest.mark.parametrize(
    "name",
    [n if n == QUICK else pytest.param(n, marks=pytest.mark.slow) for n in NOTEBOOKS],
)
def test_runs(name, monkeypatch):
    pytest.importorskip("nbmake", reason="the extra `notebooks` is not installed")
    from nbmake.nb_run import NotebookRun

    monkeypatch.setenv("JAXGAMES_TINY", "1")
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    monkeypatch.setenv("MPLBACKEND", "agg")
    cache = os.path.join(tempfile.gettempdir(), f"jaxgames-test-cache-{os.getuid()}")
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", cache)
    monkeypatch.setenv("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.2")
    before = set(HOME.iterdir())
    result = NotebookRun(HOME / name, default_timeout=600).execute()
    assert result.error is None, f"{result.error.summary}\n{result.error.trace}"
    assert set(HOME.iterdir()) == before  # all that it writes goes elsewhere
