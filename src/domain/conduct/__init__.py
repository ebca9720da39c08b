"""How procedures and runs are conducted. What opens a conduct: `conduct`, `pins`, `steered_conduct`, `arranged_conduct`, and
`run_conduct` for a run. What it does: `walk` (what is next), `signals` (what the record says to it), `ends` (where it
leads), `messages`, `run_messages`. What people say to it: `endings`, `iterations`, `verdicts`. What is seen of it:
`preflight`, `progress`, `estimates`, `views`, `live_work`, `live_views`, `control_signals`."""
