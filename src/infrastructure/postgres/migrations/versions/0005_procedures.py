"""The activity logbook of procedures."""

from alembic import op

revision, down_revision = "0005", "0004"


def upgrade() -> None:
    op.execute("""
CREATE TABLE entries_procedure_activities (
    event_id uuid PRIMARY KEY, procedure_id uuid NOT NULL, logbook_id uuid NOT NULL, actor_id uuid NOT NULL,
    command_name text NOT NULL, step_kind text NOT NULL, payload jsonb NOT NULL, sampled_at timestamptz NOT NULL,
    conduct_id uuid, correlation_id uuid NOT NULL, causation_id uuid, occurred_at timestamptz NOT NULL,
    recorded_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX entries_procedure_activities_time ON entries_procedure_activities (procedure_id, recorded_at, event_id);
CREATE INDEX entries_procedure_activities_conduct ON entries_procedure_activities (conduct_id) WHERE conduct_id IS NOT NULL;
GRANT SELECT, INSERT ON entries_procedure_activities TO baton_runtime;""")
