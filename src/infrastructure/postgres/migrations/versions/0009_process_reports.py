"""What each process says of itself, and the right of the runtime's login to see which form the database has."""

from alembic import op

revision, down_revision = "0009", "0008"


def upgrade() -> None:
    op.execute("""
CREATE UNLOGGED TABLE process_reports (
    process_id uuid PRIMARY KEY, kind text NOT NULL, host text NOT NULL, pid integer NOT NULL,
    started_at timestamptz NOT NULL, reported_at timestamptz NOT NULL, tasks jsonb NOT NULL,
    dropped_lines bigint NOT NULL
);
GRANT SELECT, INSERT, UPDATE, DELETE ON process_reports TO baton_runtime;
GRANT SELECT ON alembic_version TO baton_runtime;""")
