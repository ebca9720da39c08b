"""Agents and the language models behind decisions."""

from alembic import op

revision, down_revision = "0007", "0006"

COLUMNS = "provider_name, decision_id, event_id, occurred_at, request_model, response_model, agent_id"


def upgrade() -> None:
    op.execute(f"""
-- Which models had a part in which decisions: the newest call for each decision, under every name that the model goes by.
-- Who asks for one provider's model is answered from the indexes.
CREATE INDEX entries_decision_inferences_requested ON entries_decision_inferences (provider_name, request_model);
CREATE INDEX entries_decision_inferences_answered
    ON entries_decision_inferences (provider_name, response_model) WHERE response_model IS NOT NULL;
CREATE INDEX entries_decision_inferences_undated
    ON entries_decision_inferences (provider_name, regexp_replace(response_model, '-[0-9]{{8}}$', ''))
    WHERE response_model ~ '-[0-9]{{8}}$';
CREATE VIEW model_calls AS
    SELECT DISTINCT ON (provider_name, model, decision_id)
        provider_name, model, decision_id, occurred_at, request_model, response_model, agent_id
    FROM (
        SELECT request_model AS model, {COLUMNS} FROM entries_decision_inferences
        UNION ALL
        SELECT response_model, {COLUMNS} FROM entries_decision_inferences WHERE response_model IS NOT NULL
        UNION ALL
        SELECT regexp_replace(response_model, '-[0-9]{{8}}$', ''), {COLUMNS} FROM entries_decision_inferences
        WHERE response_model ~ '-[0-9]{{8}}$'
    ) AS named
    ORDER BY provider_name, model, decision_id, occurred_at DESC, event_id DESC;
CREATE TABLE reactions (
    subscriber_name text PRIMARY KEY, enabled boolean NOT NULL, transaction_id bigint NOT NULL, position bigint NOT NULL,
    last_event_recorded_at timestamptz, consecutive_failures integer NOT NULL, last_error_at timestamptz,
    last_error_message text
);
CREATE TABLE debrief_requests (
    decision_id uuid PRIMARY KEY, run_id uuid NOT NULL, agent_id uuid NOT NULL, parent_decision_id uuid,
    principal_id uuid NOT NULL, correlation_id uuid NOT NULL, accepted_at timestamptz NOT NULL, status text NOT NULL,
    refusal jsonb
);
CREATE TABLE spending_turns (agent_id uuid PRIMARY KEY, decision_id uuid NOT NULL, taken_at timestamptz NOT NULL);
CREATE INDEX debrief_requests_running ON debrief_requests (accepted_at) WHERE status = 'Running';
CREATE INDEX entries_decision_inferences_spent ON entries_decision_inferences (actor_id, occurred_at);
GRANT SELECT ON model_calls TO baton_runtime;
GRANT SELECT, INSERT, UPDATE ON reactions, debrief_requests TO baton_runtime;
GRANT SELECT, INSERT, UPDATE, DELETE ON spending_turns TO baton_runtime;""")
