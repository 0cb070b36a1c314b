"""What `jaxgames benchmark` measures: `env.py`, `search.py`, `train.py`.

Each has `run(config, say) -> {"rows": [{"what", "value", "unit", ...}], ...}`: `config` is the
whole configuration, `say(text)` reports progress, values are medians over repeats.
"""
