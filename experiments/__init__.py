"""What a person runs: the command line and the same in Python.

    experiments.train("sequence", ["run.name=first", "seed=3"])

raises typed errors (`configs.ConfigError` and those of `experiments.errors`) where the
command line exits with a code.
"""
