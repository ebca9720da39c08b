"""The runs that have not ended can be looked up."""

from alembic import op

revision, down_revision = "0016", "0015"


def upgrade() -> None:
    op.execute("""
INSERT INTO lookups SELECT 'run-live', started.payload ->> 'plan_id', started.stream_id FROM events AS started
WHERE started.stream_type = 'Run' AND started.event_type = 'RunStarted' AND NOT EXISTS (
    SELECT FROM events AS ended WHERE ended.stream_type = 'Run' AND ended.stream_id = started.stream_id
        AND ended.event_type IN ('RunCompleted', 'RunStopped', 'RunAborted', 'RunTruncated')
) ON CONFLICT DO NOTHING""")
