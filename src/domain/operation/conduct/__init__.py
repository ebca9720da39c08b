"""How a procedure is conducted: read `conduct.py`, then `pins`, `messages`, `step_values`, `results`, `views`."""
