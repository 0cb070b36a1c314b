"""Shared by all tests: CPU, a private persistent compilation cache, and the toy games."""

import gc
import os
import pathlib
import tempfile

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import pytest

import tests.toys.mnk  # noqa: F401  (registers "mnk")

_cache = os.environ.get("JAXGAMES_TEST_CACHE") or os.path.join(
    tempfile.gettempdir(), f"jaxgames-test-cache-{os.getuid()}"
)
pathlib.Path(_cache).mkdir(mode=0o700, parents=True, exist_ok=True)
jax.config.update("jax_compilation_cache_dir", _cache)
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.05)


#: Linux grants a process 65,530 memory maps, and every compiled program holds a dozen to
#: hundreds of them; past that XLA crashes.
MOST_MAPS = 30_000


@pytest.fixture(autouse=True, scope="module")
def few_memory_maps():
    """Lets go of compiled programs between modules before there are too many."""
    yield
    maps = pathlib.Path("/proc/self/maps")
    if maps.exists() and maps.read_bytes().count(b"\n") > MOST_MAPS:
        jax.clear_caches()
        gc.collect()


@pytest.fixture(scope="module")
def quick_compiler():
    """Where much is compiled and hardly run."""
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """`-n 2` gives a worker whole files, in their order: what a file compiles is compiled once."""
    if config.getoption("dist") != "load":
        return None
    from xdist.scheduler import LoadFileScheduling

    config.option.loadscopereorder = False  # the small files are last, and end both together
    return LoadFileScheduling(config, log)
