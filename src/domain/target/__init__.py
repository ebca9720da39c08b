"""What queues and schedules conduct in their turn: `targets`, and in `target_checks` what keeps one from it."""
