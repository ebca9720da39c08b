"""Rows of calibration revisions on their way to a peer."""

from alembic import op

revision, down_revision = "0003", "0002"


def upgrade() -> None:
    op.execute("""
CREATE TABLE calibration_publication (
    receipt_id uuid PRIMARY KEY, calibration_id uuid NOT NULL, revision_id uuid NOT NULL, peer_facility_id uuid NOT NULL,
    permit_id uuid NOT NULL, principal_id uuid NOT NULL, surface_id uuid NOT NULL, correlation_id uuid NOT NULL,
    status text NOT NULL, accepted_at timestamptz NOT NULL, signature jsonb, published_at timestamptz, refusal jsonb
);
CREATE INDEX calibration_publication_running ON calibration_publication (accepted_at) WHERE status = 'Running';
GRANT SELECT, INSERT, UPDATE, DELETE ON calibration_publication TO baton_runtime;""")
