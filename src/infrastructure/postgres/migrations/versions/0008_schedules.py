"""Schedules: what the engine has not been told of yet, and how it stands to the record."""

from alembic import op

revision = "0008"
down_revision = "0007"

RUNTIME_ROLE = "baton_runtime"

TABLES = """
CREATE TABLE schedule_changes (
    schedule_id uuid PRIMARY KEY,
    change_id uuid NOT NULL
);
CREATE TABLE schedule_standings (
    schedule_id uuid PRIMARY KEY,
    removed boolean NOT NULL,
    paused boolean NOT NULL,
    missed_count bigint NOT NULL,
    skipped_count bigint NOT NULL,
    missed_seen bigint NOT NULL,
    skipped_seen bigint NOT NULL
);
CREATE INDEX schedule_standings_kept ON schedule_standings (schedule_id) WHERE NOT removed;
CREATE INDEX events_of_schedules ON events (stream_id, event_type, version) WHERE stream_type = 'Schedule';
"""


def upgrade() -> None:
    op.execute(TABLES)
    op.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON schedule_changes TO {RUNTIME_ROLE}")
    op.execute(f"GRANT SELECT, INSERT, UPDATE ON schedule_standings TO {RUNTIME_ROLE}")


def downgrade() -> None:
    raise RuntimeError("the log is never taken back; restore a backup instead")
