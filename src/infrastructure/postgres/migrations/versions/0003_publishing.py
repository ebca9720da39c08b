"""Rows of calibration revisions on their way to a peer."""

from alembic import op

revision = "0003"
down_revision = "0002"

RUNTIME_ROLE = "baton_runtime"

TABLES = """
CREATE TABLE calibration_publication (
    receipt_id uuid PRIMARY KEY,
    calibration_id uuid NOT NULL,
    revision_id uuid NOT NULL,
    peer_facility_id uuid NOT NULL,
    permit_id uuid NOT NULL,
    principal_id uuid NOT NULL,
    surface_id uuid NOT NULL,
    correlation_id uuid NOT NULL,
    status text NOT NULL,
    accepted_at timestamptz NOT NULL,
    signature jsonb,
    published_at timestamptz,
    refusal jsonb
);
CREATE INDEX calibration_publication_running ON calibration_publication (accepted_at) WHERE status = 'Running';
"""

MUTABLE = ("calibration_publication",)


def upgrade() -> None:
    op.execute(TABLES)
    op.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON {', '.join(MUTABLE)} TO {RUNTIME_ROLE}")


def downgrade() -> None:
    raise RuntimeError("the log is never taken back; restore a backup instead")
