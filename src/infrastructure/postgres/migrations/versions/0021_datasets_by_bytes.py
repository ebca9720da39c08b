"""The datasets that have the same bytes can be looked up; digests of ingested files are not claimed any more."""

from alembic import op

revision, down_revision = "0021", "0020"


def upgrade() -> None:
    op.execute("""
INSERT INTO lookups (kind, key, stream_id)
SELECT 'dataset-digest', made.payload -> 'checksum' ->> 'value', made.stream_id FROM events AS made
WHERE made.event_type = 'DatasetRegistered' AND NOT EXISTS (
    SELECT FROM events AS gone
    WHERE gone.stream_type = 'Dataset' AND gone.stream_id = made.stream_id AND gone.event_type = 'DatasetDiscarded'
) ON CONFLICT DO NOTHING""")
    op.execute("DELETE FROM claims WHERE kind = 'scan-digest'")
