"""One distribution, whose packages are ours wherever it is installed."""

import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tomllib
import zipfile

import pytest

import configs

ROOT = pathlib.Path(__file__).parents[1]
PACKAGES = ("jaxgames", "algorithms", "configs", "experiments")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_dependencies_have_floors_and_no_caps():
    extras = PROJECT["optional-dependencies"]
    everything = [*PROJECT["dependencies"], *(d for ds in extras.values() for d in ds)]
    assert everything and {"test", "cuda", "tpu", "peers"} <= extras.keys()
    for dependency in everything:
        assert re.fullmatch(r"[A-Za-z0-9_\-]+(\[\w+\])?>=[\d.]+", dependency), dependency
    assert PROJECT["requires-python"] == ">=3.11"


def test_imports_are_declared():
    """Every third-party module that our packages import belongs to a declared dependency."""
    declared = {re.split(r"[\[>]", d)[0] for d in PROJECT["dependencies"]}
    modules = {
        "jax": "jax", "flax": "flax", "optax": "optax", "chex": "chex", "mctx": "mctx",
        "orbax": "orbax-checkpoint", "numpy": "numpy", "safetensors": "safetensors",
        "hydra": "hydra-core", "omegaconf": "omegaconf", "rich": "rich",
        "ml_dtypes": "ml_dtypes", "yaml": "omegaconf", "websockets": "websockets",
        "fastapi": "fastapi", "starlette": "fastapi", "uvicorn": "uvicorn",
        "pydantic": "pydantic", "pydantic_core": "pydantic",  # its own core, one version for both
    }  # fmt: skip
    optional = {
        "pgx",
        "flashbax",
        "onnx",
        "onnxruntime",
        "qwix",
        "tensorboardX",
        "wandb",
        "matplotlib",
        "resvg_py",
    }  # extras, imported where they are used
    adapted = {"pettingzoo", "gymnasium", "pyspiel"}
    from tests.test_house import imports, sources

    for path in sources():
        for module, top_level in imports(path):
            name = module.split(".")[0]
            if name in PACKAGES or name in sys.stdlib_module_names:
                continue
            if path.parent.name == "adapters" and name in adapted:
                continue  # the whole module is about that library
            if name in optional:
                assert not top_level, f"{path} imports {name} at its top"
                continue
            assert modules.get(name) in declared, f"{path} imports {name}"


needs_source = pytest.mark.skipif(
    not (ROOT / "jaxgames").is_dir(), reason="builds the wheel from the source tree"
)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel of a copy of the tree: building in place would leave files behind."""
    work = tmp_path_factory.mktemp("wheel")
    copy = [
        "cp",
        "-R",
        *(str(ROOT / n) for n in (*PACKAGES, "pyproject.toml", "README.md", "LICENSE")),
    ]
    (work / "source").mkdir()
    subprocess.run([*copy, str(work / "source")], check=True)
    build = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(work / "dist")]
    subprocess.run([*build, str(work / "source")], check=True)
    (found,) = (work / "dist").glob("jaxgames-*.whl")
    return found


@needs_source
def test_every_file_of_the_pages_is_declared():
    data = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    home = ROOT / "experiments"
    declared = {path for glob in data["package-data"]["experiments"] for path in home.glob(glob)}
    shipped = files(home / "web")
    assert len(shipped) > 30 and declared.issuperset(shipped)


@pytest.mark.slow
@needs_source
def test_the_wheel_holds_the_pages_as_they_are(wheel):
    """Scripts, styles, and what is vendored with its licences and hashes: byte for byte."""
    with zipfile.ZipFile(wheel) as packed:
        inside = {name: packed.read(name) for name in packed.namelist()}
    web = ROOT / "experiments" / "web"
    tree = {path.relative_to(ROOT).as_posix(): path.read_bytes() for path in files(web)}
    assert {n: data for n, data in inside.items() if n.startswith("experiments/web/")} == tree
    listed = json.loads(tree["experiments/web/vendor/vendor.json"])["files"]
    for entry in listed:
        for name, sha256 in {entry["file"]: entry["sha256"], **entry["licence_files"]}.items():
            data = inside[f"experiments/web/vendor/{name}"]
            assert hashlib.sha256(data).hexdigest() == sha256, name


def files(folder):
    return sorted(path for path in folder.rglob("*") if path.is_file())


@pytest.mark.slow
@needs_source
def test_wheel_holds_packages_and_data_but_no_tests(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    tops = {n.split("/")[0] for n in names}
    assert {t for t in tops if not t.endswith(".dist-info")} == set(PACKAGES)
    assert any(n.endswith("licenses/LICENSE") for n in names)
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*"):
            if path.suffix in (".py", ".yaml", ".svg", ".safetensors", ".json", ".md"):
                assert path.relative_to(ROOT).as_posix() in names, path


@pytest.mark.slow
@needs_source
def test_installed_wheel_works_from_a_foreign_directory(wheel, tmp_path):
    """A clean environment; a folder whose own `configs.py` must not come first for us."""
    env = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | {"JAX_PLATFORMS": "cpu"}
    env["PIP_CONSTRAINT"] = str(ROOT / ".ci" / "constraints.txt")
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    binaries = tmp_path / "venv" / "bin"
    subprocess.run([binaries / "python", "-m", "pip", "install", "-q", wheel], check=True, env=env)
    foreign = tmp_path / "elsewhere"
    foreign.mkdir()
    (foreign / "configs.py").write_text("raise SystemExit('a stranger')")

    def run(*command):
        return subprocess.run(
            command, cwd=foreign, env=env, check=True, capture_output=True, text=True
        ).stdout

    listed = run(binaries / "jaxgames", "configs", "list").split()
    assert tuple(listed) == configs.presets()
    for name in listed:
        run(binaries / "jaxgames", "configs", "show", name)
    program = f"import importlib; [print(importlib.import_module(n).__file__) for n in {PACKAGES}]"
    homes = run(binaries / "python", "-I", "-c", program).split()
    for package, home in zip(PACKAGES, homes, strict=True):
        assert pathlib.Path(home).parent.parent.is_relative_to(tmp_path / "venv"), package
    assert "ok   imports" in run(binaries / "jaxgames", "doctor")
    assert run(binaries / "jaxgames", "--version").startswith("jaxgames ")
