"""Who acts: through which surface each event came, and when monitors last reported supplies."""

from alembic import op

revision = "0010"
down_revision = "0009"

RUNTIME_ROLE = "baton_runtime"

TABLES = """
ALTER TABLE events ADD COLUMN surface_id uuid;
CREATE TABLE supply_contact (
    supply_id uuid PRIMARY KEY,
    contacted_at timestamptz NOT NULL
);
"""


def upgrade() -> None:
    op.execute(TABLES)
    op.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON supply_contact TO {RUNTIME_ROLE}")


def downgrade() -> None:
    raise RuntimeError("the log is never taken back; restore a backup instead")
