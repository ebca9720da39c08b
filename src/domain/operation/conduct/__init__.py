"""How a procedure is conducted. What opens it: `conduct`, `options`, `pins`, `touched`. What it does: `walk` (what is next),
`signals` (what the record says to it), `ends` (where it leads), `messages`, `step_values`. What people say about a step:
`verdicts`. What is seen of it: `progress`, `results`, `estimates`, `views`, `control_signals`."""
