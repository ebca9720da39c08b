"""Agents and the language models behind decisions."""

from alembic import op

revision = "0007"
down_revision = "0006"

RUNTIME_ROLE = "baton_runtime"

COLUMNS = "provider_name, decision_id, event_id, occurred_at, request_model, response_model, agent_id"
MODEL_CALLS = f"""
CREATE INDEX entries_decision_inferences_requested
    ON entries_decision_inferences (provider_name, request_model);
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
"""
"""Which models had a part in which decisions: the newest call for each decision, under every name that the model goes by.
Who asks for one provider's model is answered from the indexes."""


def upgrade() -> None:
    op.execute(MODEL_CALLS)
    op.execute(f"GRANT SELECT ON model_calls TO {RUNTIME_ROLE}")


def downgrade() -> None:
    raise RuntimeError("the log is never taken back; restore a backup instead")
