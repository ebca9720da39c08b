"""What each process says of itself, and the right of the runtime's login to see which form the database has."""

from alembic import op

revision = "0009"
down_revision = "0008"

RUNTIME_ROLE = "baton_runtime"

TABLES = """
CREATE UNLOGGED TABLE process_reports (
    process_id uuid PRIMARY KEY,
    kind text NOT NULL,
    host text NOT NULL,
    pid integer NOT NULL,
    started_at timestamptz NOT NULL,
    reported_at timestamptz NOT NULL,
    tasks jsonb NOT NULL,
    dropped_lines bigint NOT NULL
);
"""


def upgrade() -> None:
    op.execute(TABLES)
    op.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON process_reports TO {RUNTIME_ROLE}")
    op.execute(f"GRANT SELECT ON alembic_version TO {RUNTIME_ROLE}")


def downgrade() -> None:
    raise RuntimeError("the log is never taken back; restore a backup instead")
