"""Readings of runs: what was observed and what steps captured, as one list; nothing is stored twice."""

from alembic import op

revision, down_revision = "0022", "0021"


def upgrade() -> None:
    op.execute("""
CREATE INDEX lookups_phases ON lookups ((key::uuid)) WHERE kind = 'phase';
CREATE VIEW run_captures AS
    SELECT event_id, logbook_id, actor_id, command_name, correlation_id, causation_id, occurred_at, recorded_at,
        key::uuid AS run_id, slot AS channel_name, (payload ->> 'captured_value')::double precision AS value,
        coalesce(payload ->> 'captured_unit', payload #>> '{reading,units}', (
            SELECT measured ->> 'units'
            FROM entries_procedure_activities done, jsonb_array_elements(done.payload -> 'measurements') measured
            WHERE (done.conduct_id, done.iteration_index, done.closing, done.step_index, done.mark)
                = (entry.conduct_id, entry.iteration_index, entry.closing, entry.step_index, 'outcome')
            AND measured ->> 'name' = entry.slot LIMIT 1
        )) AS units,
        'capture' AS sampling_procedure, coalesce(payload ->> 'actuation_kind' = 'simulated', false) AS simulated,
        coalesce((payload #>> '{reading,sampled_at}')::timestamptz, sampled_at) AS sampled_at
    FROM entries_procedure_activities entry JOIN lookups ON kind = 'phase' AND stream_id = procedure_id
    WHERE slot IS NOT NULL AND payload ? 'captured_value';
CREATE VIEW run_readings AS
    SELECT event_id, logbook_id, actor_id, command_name, correlation_id, causation_id, occurred_at, recorded_at, run_id,
        channel_name, value, units, sampling_procedure, simulated, sampled_at
    FROM entries_run_observations UNION ALL TABLE run_captures;
CREATE VIEW run_reading_channels AS
    SELECT run_id, channel_name, sum(count)::bigint AS count, min(first_recorded_at) AS first_recorded_at,
        bool_or(simulated) AS simulated, max(latest_recorded_at) AS latest_recorded_at,
        (array_agg(latest_value ORDER BY latest_recorded_at DESC, latest_event_id DESC))[1] AS latest_value,
        (array_agg(units ORDER BY latest_recorded_at DESC, latest_event_id DESC))[1] AS units,
        (array_agg(latest_sampled_at ORDER BY latest_recorded_at DESC, latest_event_id DESC))[1] AS latest_sampled_at
    FROM (
        SELECT run_id, channel_name, count, first_recorded_at, simulated, latest_recorded_at, latest_event_id, latest_value,
            units, latest_sampled_at FROM run_channels
        UNION ALL
        SELECT run_id, channel_name COLLATE "C", 1, recorded_at, simulated, recorded_at, event_id, value, units, sampled_at
        FROM run_captures
    ) AS summed GROUP BY run_id, channel_name;
GRANT SELECT ON run_readings, run_reading_channels TO baton_runtime;""")
