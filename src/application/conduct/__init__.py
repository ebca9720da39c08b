"""How conducts are carried out, and the ports of what steps do. Read `conduct_record` (the plan of a conduct, and what the
record says to it), `ledger`, `step_execution`, `step_effects`, `heartbeat`; then `conductor` (begin, close, end), `passes`
and `run_conductor`. `conduct_work` starts them and keeps the record to the engine; `conduct_reader` and `conduct_times` are
for those who watch."""
