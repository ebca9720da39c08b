"""What schedules and queues conduct in their turn: `targets`, `arranged_conduct`, and the ids that `launch_ids` derives."""
