"""One file per command; `main(call)` is what the shell runs, `run(...)` what Python calls."""
