"""Rules of the house that a reader of the code may rely on."""

import ast
import functools
import pathlib

import pytest

import algorithms
import configs
import experiments
import jaxgames

PACKAGES = {
    m.__name__: pathlib.Path(m.__file__).parent
    for m in (jaxgames, algorithms, configs, experiments)
}


@functools.cache
def sources() -> tuple[pathlib.Path, ...]:
    return tuple(p for home in PACKAGES.values() for p in sorted(home.rglob("*.py")))


@functools.cache
def nodes(text: str) -> tuple[tuple[ast.AST, bool], ...]:
    """(node, whether outside of functions) of the module first, then of all in it."""
    found = [(ast.parse(text), True)]
    for node, top in found:
        outside = top and not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        found += [(child, outside) for child in ast.iter_child_nodes(node)]
    return tuple(found)


@functools.cache
def imports(path: pathlib.Path) -> tuple[tuple[str, bool], ...]:
    """(module, whether at the top of the file) of every import."""
    found = []
    for node, top in nodes(path.read_text("utf-8")):
        if isinstance(node, ast.Import):
            found += [(alias.name, top) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            found.append((node.module, top))
    return tuple(found)


def test_there_is_something_to_check():
    assert len(sources()) > 40
    assert sum(len(imports(p)) for p in sources()) > 200


# ---- layers ----

BELOW = {
    "jaxgames": set(),
    "algorithms": {"jaxgames"},
    "configs": {"jaxgames", "algorithms"},
    "experiments": {"jaxgames", "algorithms", "configs"},
}


@pytest.mark.parametrize("package", BELOW)
def test_layers(package):
    for path in PACKAGES[package].rglob("*.py"):
        for module, _ in imports(path):
            top = module.split(".")[0]
            if top in BELOW and top != package:
                assert top in BELOW[package], f"{path} imports {module}"
            assert top != "tests", f"{path} imports {module}"


def test_flax_stays_behind_the_seam():
    for path in sources():
        if not path.is_relative_to(PACKAGES["algorithms"] / "networks"):
            assert all(m.split(".")[0] != "flax" for m, _ in imports(path)), path


def test_games_use_no_files_and_no_clocks():
    """But records, which are files, conformance, which measures, and adapters, which do what
    other libraries want of them."""
    for path in PACKAGES["jaxgames"].rglob("*.py"):
        if path.name != "record.py" and path.parent.name not in ("conformance", "adapters"):
            banned = {"time", "random", "os", "pathlib", "datetime", "subprocess"}
            assert not banned & {m.split(".")[0] for m, _ in imports(path)}, path


# ---- what runs code out of files ----

BANNED_MODULES = {
    "pickle", "cPickle", "cloudpickle", "dill", "joblib", "marshal", "shelve", "torch",
    "jax.experimental.serialize_executable",
}  # fmt: skip
BANNED_CALLS = {
    "eval", "exec", "compile", "__import__", "yaml.load", "yaml.unsafe_load", "yaml.full_load",
    "torch.load", "hydra.utils.instantiate", "instantiate", "os.system", "os.popen",
}  # fmt: skip


def dotted(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def offences(text: str) -> list[str]:
    found = []
    for node, _ in nodes(text):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or "", *(f"{node.module}.{a.name}" for a in node.names)]
        found += [n for n in names if n in BANNED_MODULES or n.split(".")[0] in BANNED_MODULES]
        if isinstance(node, ast.Call):
            name = dotted(node.func)
            keywords = {k.arg for k in node.keywords}
            if name in BANNED_CALLS or "allow_pickle" in keywords or "shell" in keywords:
                found.append(name)
    return found


def test_nothing_runs_code_out_of_files():
    for path in sources():
        assert offences(path.read_text("utf-8")) == [], path


@pytest.mark.parametrize(
    "text",
    [
        "import pickle",
        "from pickle import loads",
        "import joblib.hashing",
        "eval('1')",
        "exec(x)",
        "yaml.load(f)",
        "np.load(f, allow_pickle=True)",
        "torch.load(f)",
        "from jax.experimental import serialize_executable",
        "subprocess.run('ls', shell=True)",
    ],
)
def test_the_lint_sees(text):
    assert offences(text)


# ---- style that tools do not check ----


def test_files_stay_readable():
    for path in sources():
        assert len(path.read_text("utf-8").splitlines()) <= 560, path


def test_modules_say_what_they_are():
    for path in sources():
        text = path.read_text("utf-8")
        assert not text.strip() or ast.get_docstring(nodes(text)[0][0]), path
