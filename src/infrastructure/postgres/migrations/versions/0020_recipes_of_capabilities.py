"""Launches: the recipes of a capability are found without their list, those from before too."""

from alembic import op

revision, down_revision = "0020", "0019"


def upgrade() -> None:
    op.execute("""
INSERT INTO lookups (kind, key, stream_id)
SELECT 'capability-recipe', payload ->> 'capability_id', stream_id FROM events WHERE event_type = 'RecipeDefined'
ON CONFLICT DO NOTHING""")
