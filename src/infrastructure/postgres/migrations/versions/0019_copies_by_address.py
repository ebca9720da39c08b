"""The copies whose bytes are believed to be at an address can be looked up."""

from alembic import op

revision, down_revision = "0019", "0018"


def upgrade() -> None:
    op.execute("""
INSERT INTO lookups
SELECT 'distribution-address', encode(sha256(convert_to(rtrim(copy.payload ->> 'uri', '/'), 'UTF8')), 'hex'), copy.stream_id
FROM events AS copy
WHERE copy.stream_type = 'Distribution' AND copy.event_type = 'DistributionRegistered' AND (
    SELECT event_type FROM events AS latest WHERE latest.stream_type = 'Distribution' AND latest.stream_id = copy.stream_id
    ORDER BY version DESC LIMIT 1
) IN ('DistributionRegistered', 'DistributionVerified') ON CONFLICT DO NOTHING""")
