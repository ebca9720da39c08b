"""Durations of steps: an index by which the last outcomes of a kind of step on a target are found in the ledger."""

# It is made inside the migration's transaction, which CREATE INDEX CONCURRENTLY cannot be. No row of an earlier build has
# `seconds`, so it begins empty: the ledger is read once, and writers wait for that long.
from alembic import op

revision, down_revision = "0013", "0012"


def upgrade() -> None:
    op.execute("""
CREATE INDEX entries_procedure_activities_duration
    ON entries_procedure_activities (step_kind, (payload ->> 'target'), recorded_at DESC)
    WHERE mark = 'outcome' AND payload ->> 'result' = 'ok' AND payload ? 'seconds';""")
