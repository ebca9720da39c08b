"""The executors of Bluesky plans, what each offered when it was last heard, and the steps that were submitted to them."""

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
CREATE INDEX entries_procedure_activities_submission ON entries_procedure_activities ((payload ->> 'submission_key'))
    WHERE mark = 'in_flight' AND payload ->> 'submission_key' IS NOT NULL;
CREATE INDEX entries_procedure_activities_task ON entries_procedure_activities ((payload #>> '{token,task_id}'))
    WHERE mark = 'in_flight' AND payload #>> '{token,task_id}' IS NOT NULL;
GRANT SELECT, INSERT, UPDATE, DELETE ON plan_executors TO baton_runtime;""")
