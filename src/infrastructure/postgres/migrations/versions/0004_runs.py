"""The logbooks of runs: what was measured while they were on, and what was written about them."""

from alembic import op

revision, down_revision = "0004", "0003"


def upgrade() -> None:
    op.execute("""
CREATE TABLE entries_run_observations (
    event_id uuid PRIMARY KEY, run_id uuid NOT NULL, logbook_id uuid NOT NULL, actor_id uuid NOT NULL,
    command_name text NOT NULL, channel_name text NOT NULL,
    value double precision NOT NULL CHECK (value > '-Infinity' AND value < 'Infinity'), units text,
    sampling_procedure text NOT NULL, simulated boolean NOT NULL, sampled_at timestamptz NOT NULL,
    correlation_id uuid NOT NULL, causation_id uuid, occurred_at timestamptz NOT NULL,
    recorded_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX entries_run_observations_time ON entries_run_observations (run_id, recorded_at, event_id);
CREATE INDEX entries_run_observations_channel ON entries_run_observations (run_id, channel_name, recorded_at, event_id);
CREATE TABLE run_channels (
    run_id uuid NOT NULL, channel_name text COLLATE "C" NOT NULL, count bigint NOT NULL,
    first_recorded_at timestamptz NOT NULL, simulated boolean NOT NULL, latest_recorded_at timestamptz NOT NULL,
    latest_event_id uuid NOT NULL, latest_value double precision NOT NULL, units text,
    latest_sampled_at timestamptz NOT NULL, PRIMARY KEY (run_id, channel_name)
) WITH (fillfactor = 50);
CREATE TABLE entries_run_narrative (
    event_id uuid PRIMARY KEY, run_id uuid NOT NULL, logbook_id uuid NOT NULL, actor_id uuid NOT NULL,
    command_name text NOT NULL, entry_kind text NOT NULL, text text NOT NULL, decision_id uuid,
    correlation_id uuid NOT NULL, causation_id uuid, occurred_at timestamptz NOT NULL,
    recorded_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX entries_run_narrative_time ON entries_run_narrative (run_id, recorded_at, event_id);
-- Sums what a run has recorded by channel, so that nobody counts hundreds of thousands of readings. Channels are taken in
-- order: appends that meet wait for each other and never in a circle.
CREATE FUNCTION sum_up_run_channels() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    WITH summed AS (
        SELECT run_id, channel_name, count(*) AS count, min(recorded_at) AS first_recorded_at,
            bool_or(simulated) AS simulated
        FROM added GROUP BY run_id, channel_name
    ), latest AS (
        SELECT DISTINCT ON (run_id, channel_name) run_id, channel_name, recorded_at, event_id, value, units, sampled_at
        FROM added ORDER BY run_id, channel_name, recorded_at DESC, event_id DESC
    )
    INSERT INTO run_channels AS known (
        run_id, channel_name, count, first_recorded_at, simulated,
        latest_recorded_at, latest_event_id, latest_value, units, latest_sampled_at
    )
    SELECT run_id, channel_name, count, first_recorded_at, simulated, recorded_at, event_id, value, units, sampled_at
    FROM summed JOIN latest USING (run_id, channel_name) ORDER BY run_id, channel_name
    ON CONFLICT (run_id, channel_name) DO UPDATE SET
        count = known.count + excluded.count,
        first_recorded_at = least(known.first_recorded_at, excluded.first_recorded_at),
        simulated = known.simulated OR excluded.simulated,
        (latest_recorded_at, latest_event_id, latest_value, units, latest_sampled_at) = (
            SELECT * FROM (VALUES
                (known.latest_recorded_at, known.latest_event_id, known.latest_value, known.units, known.latest_sampled_at),
                (excluded.latest_recorded_at, excluded.latest_event_id, excluded.latest_value, excluded.units,
                 excluded.latest_sampled_at)
            ) AS readings (recorded_at, event_id) ORDER BY recorded_at DESC, event_id DESC LIMIT 1
        );
    RETURN NULL;
END
$$;
CREATE TRIGGER sum_up_run_channels AFTER INSERT ON entries_run_observations
REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION sum_up_run_channels();
GRANT SELECT ON run_channels TO baton_runtime;
GRANT SELECT, INSERT ON entries_run_observations, entries_run_narrative TO baton_runtime;""")
