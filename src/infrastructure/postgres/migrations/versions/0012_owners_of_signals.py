"""Owners of signals: the look-up rows of the EPICS_PV identifiers that assets in service have had before."""

from alembic import op

revision, down_revision = "0012", "0011"


def upgrade() -> None:
    op.execute("""
WITH said AS (
    SELECT stream_id, version, identifier ->> 'value' AS value, true AS held
    FROM events CROSS JOIN json_array_elements(payload -> 'alternate_identifiers') AS identifier
    WHERE stream_type = 'Asset' AND event_type = 'AssetRegistered' AND identifier ->> 'kind' = 'EPICS_PV'
    UNION ALL
    SELECT stream_id, version, payload ->> 'value', event_type = 'AssetAlternateIdentifierAdded' FROM events
    WHERE stream_type = 'Asset' AND payload ->> 'kind' = 'EPICS_PV'
        AND event_type IN ('AssetAlternateIdentifierAdded', 'AssetAlternateIdentifierRemoved')
), latest AS (SELECT DISTINCT ON (stream_id, value) stream_id, value, held FROM said ORDER BY stream_id, value, version DESC)
INSERT INTO lookups (kind, key, stream_id)
SELECT 'epics-pv', value, stream_id FROM latest WHERE held AND NOT EXISTS (
    SELECT FROM events AS retired WHERE retired.stream_type = 'Asset' AND retired.stream_id = latest.stream_id
        AND retired.event_type = 'AssetDecommissioned'
) ON CONFLICT DO NOTHING;""")
