"""The key `device`: which platform jax computes on."""

from __future__ import annotations

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
