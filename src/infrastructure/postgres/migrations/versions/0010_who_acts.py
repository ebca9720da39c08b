"""Who acts: through which surface each event came, and when monitors last reported supplies."""

from alembic import op

revision, down_revision = "0010", "0009"


def upgrade() -> None:
    op.execute("""
ALTER TABLE events ADD COLUMN surface_id uuid;
CREATE TABLE supply_contact (supply_id uuid PRIMARY KEY, contacted_at timestamptz NOT NULL);
GRANT SELECT, INSERT, UPDATE, DELETE ON supply_contact TO baton_runtime;""")
