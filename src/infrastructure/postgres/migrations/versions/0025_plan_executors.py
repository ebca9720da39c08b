"""The executors of Bluesky plans, and what each offered when it was last heard."""

from alembic import op

revision, down_revision = "0025", "0024"


def upgrade() -> None:
    op.execute("""
CREATE TABLE plan_executors (
    executor text PRIMARY KEY,
    asked_at timestamptz NOT NULL,
    heard_at timestamptz,
    trouble text,
    version text,
    environment text,
    plans json NOT NULL,
    devices json NOT NULL
);
GRANT SELECT, INSERT, UPDATE, DELETE ON plan_executors TO baton_runtime;""")
