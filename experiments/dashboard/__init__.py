"""The dashboard: what a run folder holds, for a page, for pictures and for a report.

lines    reading files of JSON lines that grow, or that a killed writer left torn
series   metrics cut to about 2,000 points, extremes kept
panels   which metrics are looked at together, and what they mean
run      one run folder; a catalogue of them
board    the games of a run, replayed and drawn
flat     the messages of an older dashboard, for its clients
report   one HTML file with the data inside
app      the small server of `jaxgames dashboard`

Nothing in here writes to a run folder.
"""
