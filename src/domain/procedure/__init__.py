"""A procedure: its state and events in `procedure`, the signals that its steps touch, and its log of activities."""
