"""Schedules: what the engine has not been told of yet, and how it stands to the record."""

from alembic import op

revision, down_revision = "0008", "0007"


def upgrade() -> None:
    op.execute("""
CREATE TABLE schedule_changes (schedule_id uuid PRIMARY KEY, change_id uuid NOT NULL);
CREATE TABLE schedule_standings (
    schedule_id uuid PRIMARY KEY, removed boolean NOT NULL, paused boolean NOT NULL, missed_count bigint NOT NULL,
    skipped_count bigint NOT NULL, missed_seen bigint NOT NULL, skipped_seen bigint NOT NULL
);
CREATE INDEX schedule_standings_kept ON schedule_standings (schedule_id) WHERE NOT removed;
CREATE INDEX events_of_schedules ON events (stream_id, event_type, version) WHERE stream_type = 'Schedule';
GRANT SELECT, INSERT, UPDATE, DELETE ON schedule_changes TO baton_runtime;
GRANT SELECT, INSERT, UPDATE ON schedule_standings TO baton_runtime;""")
