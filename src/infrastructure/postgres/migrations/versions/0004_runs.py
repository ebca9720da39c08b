"""The logbooks of runs: what was measured while they were on, and what was written about them."""

from alembic import op

revision = "0004"
down_revision = "0003"

RUNTIME_ROLE = "baton_runtime"

TABLES = """
CREATE TABLE entries_run_observations (
    event_id uuid PRIMARY KEY,
    run_id uuid NOT NULL,
    logbook_id uuid NOT NULL,
    actor_id uuid NOT NULL,
    command_name text NOT NULL,
    channel_name text NOT NULL,
    value double precision NOT NULL CHECK (value > '-Infinity' AND value < 'Infinity'),
    units text,
    sampling_procedure text NOT NULL,
    simulated boolean NOT NULL,
    sampled_at timestamptz NOT NULL,
    correlation_id uuid NOT NULL,
    causation_id uuid,
    occurred_at timestamptz NOT NULL,
    recorded_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX entries_run_observations_time ON entries_run_observations (run_id, recorded_at, event_id);
CREATE INDEX entries_run_observations_channel ON entries_run_observations (run_id, channel_name, recorded_at, event_id);

CREATE VIEW run_channels AS
SELECT
    summed.run_id, summed.channel_name, count, first_recorded_at, latest.recorded_at AS latest_recorded_at,
    value AS latest_value, units, sampled_at AS latest_sampled_at, summed.simulated
FROM (
    SELECT run_id, channel_name, count(*) AS count, min(recorded_at) AS first_recorded_at, bool_or(simulated) AS simulated
    FROM entries_run_observations GROUP BY run_id, channel_name
) summed
CROSS JOIN LATERAL (
    SELECT recorded_at, value, units, sampled_at FROM entries_run_observations rows
    WHERE rows.run_id = summed.run_id AND rows.channel_name = summed.channel_name
    ORDER BY recorded_at DESC, event_id DESC LIMIT 1
) latest;

CREATE TABLE entries_run_narrative (
    event_id uuid PRIMARY KEY,
    run_id uuid NOT NULL,
    logbook_id uuid NOT NULL,
    actor_id uuid NOT NULL,
    command_name text NOT NULL,
    entry_kind text NOT NULL,
    text text NOT NULL,
    decision_id uuid,
    correlation_id uuid NOT NULL,
    causation_id uuid,
    occurred_at timestamptz NOT NULL,
    recorded_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX entries_run_narrative_time ON entries_run_narrative (run_id, recorded_at, event_id);
"""


def upgrade() -> None:
    op.execute(TABLES)
    op.execute(f"GRANT SELECT ON run_channels TO {RUNTIME_ROLE}")
    op.execute(f"GRANT SELECT, INSERT ON entries_run_observations, entries_run_narrative TO {RUNTIME_ROLE}")


def downgrade() -> None:
    raise NotImplementedError("the log is never taken back; restore a backup instead")
