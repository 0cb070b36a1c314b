"""What `jaxgames benchmark` measures: `env.py`, `search.py`, `train.py`, `ablation.py`.

Each has `run(config, say) -> {"rows": [{"what", "value", "unit", ...}], ...}`: `config` is the
whole configuration, `say(text)` reports progress, values are medians over repeats. The rows of an
ablation are variants, see there.
"""
