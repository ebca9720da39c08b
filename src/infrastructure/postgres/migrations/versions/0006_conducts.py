"""Conducts of procedures and of runs: where each stands, the ledger among the activities, and the slots that it fills."""

from alembic import op

revision, down_revision = "0006", "0005"


def upgrade() -> None:
    op.execute("""
CREATE TABLE conducts (
    conduct_id uuid PRIMARY KEY, procedure_id uuid NOT NULL, command_name text NOT NULL, principal_id uuid NOT NULL,
    surface_id uuid NOT NULL, conduit_id uuid NOT NULL, correlation_id uuid NOT NULL, step_count integer NOT NULL,
    closing_count integer NOT NULL
);
CREATE TABLE conduct_progress (
    procedure_id uuid PRIMARY KEY, conduct_id uuid NOT NULL, command_name text NOT NULL, phase text NOT NULL,
    waiting_for text, waiting_until timestamptz, step_index integer, iteration_index integer,
    started_at timestamptz NOT NULL, heartbeat_at timestamptz, stalled_at timestamptz, active_at timestamptz NOT NULL,
    effect_id uuid, effect_beat_at timestamptz
) WITH (fillfactor = 50);
CREATE INDEX conduct_progress_phase ON conduct_progress (phase) WHERE phase <> 'Ended';
CREATE TABLE run_conducts (
    conduct_id uuid PRIMARY KEY, run_id uuid NOT NULL, principal_id uuid NOT NULL, surface_id uuid NOT NULL,
    conduit_id uuid NOT NULL, correlation_id uuid NOT NULL, phase_count integer NOT NULL
);
CREATE TABLE run_conduct_progress (
    run_id uuid PRIMARY KEY, conduct_id uuid NOT NULL, phase text NOT NULL, phase_index integer, waiting jsonb,
    started_at timestamptz NOT NULL, heartbeat_at timestamptz, stalled_at timestamptz
) WITH (fillfactor = 50);
CREATE INDEX run_conduct_progress_phase ON run_conduct_progress (phase) WHERE phase <> 'Ended';
ALTER TABLE entries_procedure_activities
    ADD COLUMN iteration_index integer, ADD COLUMN closing boolean, ADD COLUMN step_index integer,
    ADD COLUMN mark text, ADD COLUMN attempt integer, ADD COLUMN slot text;
DROP INDEX entries_procedure_activities_conduct;
CREATE INDEX entries_procedure_activities_place
    ON entries_procedure_activities (conduct_id, iteration_index, closing, step_index) WHERE conduct_id IS NOT NULL;
CREATE UNIQUE INDEX entries_procedure_activities_outcome
    ON entries_procedure_activities (conduct_id, iteration_index, closing, step_index, mark)
    WHERE mark IN ('outcome', 'deposit');
CREATE INDEX entries_procedure_activities_begun ON entries_procedure_activities (procedure_id, step_index)
    WHERE mark IS NOT NULL AND step_kind IN ('action', 'compute') AND NOT closing;
CREATE INDEX entries_procedure_activities_slot
    ON entries_procedure_activities (procedure_id, conduct_id, iteration_index) WHERE slot IS NOT NULL;
CREATE VIEW conduct_slots AS
    SELECT event_id AS entry_id, procedure_id, conduct_id, iteration_index, closing, step_index, slot,
        CASE WHEN payload ? 'artifact' THEN jsonb_build_object('artifact', payload -> 'artifact')
            ELSE jsonb_build_object('value', payload -> 'captured_value') END AS content,
        recorded_at
    FROM entries_procedure_activities WHERE slot IS NOT NULL;
GRANT SELECT, INSERT, UPDATE ON conducts, conduct_progress, run_conducts, run_conduct_progress TO baton_runtime;
GRANT SELECT ON conduct_slots TO baton_runtime;""")
