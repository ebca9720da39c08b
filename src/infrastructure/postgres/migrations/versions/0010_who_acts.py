"""Who acts: through which surface each event came, and when monitors last reported supplies."""

from alembic import op

revision = "0010"
down_revision = "0009"

SQL = """
ALTER TABLE events ADD COLUMN surface_id uuid;
CREATE TABLE supply_contact (
    supply_id uuid PRIMARY KEY, contacted_at timestamptz NOT NULL
);
GRANT SELECT, INSERT, UPDATE, DELETE ON supply_contact TO baton_runtime;
"""


def upgrade() -> None:
    op.execute(SQL)
