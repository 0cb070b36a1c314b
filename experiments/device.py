"""The key `device`: which platform jax computes on; and where compiled programs are kept."""

from __future__ import annotations

import os
import pathlib

from configs import ConfigError


def select(device: str) -> None:
    """Make jax use `device` (auto, cpu, gpu, tpu); raises ConfigError when it is not there."""
    import jax

    if device == "auto":
        return
    platforms = {"gpu": "cuda,rocm"}.get(device, device)
    if device == "cpu":
        jax.config.update("jax_platforms", platforms)
    try:
        found = jax.devices()[0].platform
    except RuntimeError as error:
        raise ConfigError("device", f"jax finds none ({error})") from None
    if found != device:
        raise ConfigError("device", f"asked for {device}, but jax computes on {found} here")


def use_compile_cache() -> None:
    """Keep compiled programs between runs, where only this user can write.

    The cache holds executables; a setting made elsewhere (by a test, say) is left alone.
    """
    import jax

    if jax.config.jax_compilation_cache_dir:
        return
    home = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    folder = pathlib.Path(home) / "jaxgames" / "xla"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError:  # no home, or one that is read-only: compile each time
        return
    jax.config.update("jax_compilation_cache_dir", str(folder))
