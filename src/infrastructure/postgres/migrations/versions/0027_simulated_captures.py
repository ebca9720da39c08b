"""A captured reading is simulated unless its step touched real equipment alone; before, none was."""

from alembic import op

revision, down_revision = "0027", "0026"


def upgrade() -> None:
    op.execute("""
CREATE OR REPLACE VIEW run_captures AS
    SELECT event_id, logbook_id, actor_id, command_name, correlation_id, causation_id, occurred_at, recorded_at,
        key::uuid AS run_id, slot AS channel_name, (payload ->> 'captured_value')::double precision AS value,
        coalesce(payload ->> 'captured_unit', payload #>> '{reading,units}', (
            SELECT measured ->> 'units'
            FROM entries_procedure_activities done, jsonb_array_elements(done.payload -> 'measurements') measured
            WHERE (done.conduct_id, done.iteration_index, done.closing, done.step_index, done.mark)
                = (entry.conduct_id, entry.iteration_index, entry.closing, entry.step_index, 'outcome')
            AND measured ->> 'name' = entry.slot LIMIT 1
        )) AS units,
        'capture' AS sampling_procedure, coalesce(payload ->> 'actuation_kind' <> 'Physical', false) AS simulated,
        coalesce((payload #>> '{reading,sampled_at}')::timestamptz, sampled_at) AS sampled_at
    FROM entries_procedure_activities entry JOIN lookups ON kind = 'phase' AND stream_id = procedure_id
    WHERE slot IS NOT NULL AND payload ? 'captured_value';""")
