"""Rows of what a run depends on: contact with enclosures, and the calls behind decisions."""

from alembic import op

revision, down_revision = "0002", "0001"


def upgrade() -> None:
    op.execute("""
CREATE TABLE enclosure_contact (enclosure_id uuid PRIMARY KEY, contacted_at timestamptz NOT NULL);
CREATE TABLE entries_decision_inferences (
    event_id uuid PRIMARY KEY, decision_id uuid NOT NULL, logbook_id uuid NOT NULL, actor_id uuid NOT NULL,
    command_name text NOT NULL, operation_name text NOT NULL, provider_name text NOT NULL, request_model text NOT NULL,
    response_id text, response_model text, output_type text, finish_reasons text[] NOT NULL,
    request_temperature double precision, request_top_p double precision, request_max_tokens bigint, input_tokens bigint,
    output_tokens bigint, cost double precision, duration double precision, agent_id text, agent_name text,
    agent_description text, conversation_id text, tool_name text, tool_call_id text, tool_type text, messages jsonb,
    correlation_id uuid NOT NULL, causation_id uuid, occurred_at timestamptz NOT NULL,
    recorded_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX entries_decision_inferences_time ON entries_decision_inferences (decision_id, occurred_at, event_id);
GRANT SELECT, INSERT ON entries_decision_inferences TO baton_runtime;
GRANT SELECT, INSERT, UPDATE, DELETE ON enclosure_contact TO baton_runtime;""")
