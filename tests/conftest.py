"""Shared by all tests: CPU, a private persistent compilation cache, and the toy games."""

import os
import pathlib
import tempfile

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax

import tests.toys.mnk  # noqa: F401  (registers "mnk")

_cache = os.environ.get("JAXGAMES_TEST_CACHE") or os.path.join(
    tempfile.gettempdir(), f"jaxgames-test-cache-{os.getuid()}"
)
pathlib.Path(_cache).mkdir(mode=0o700, parents=True, exist_ok=True)
jax.config.update("jax_compilation_cache_dir", _cache)
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)
