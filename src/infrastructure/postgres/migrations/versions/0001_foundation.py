"""The log, the rows written with it, and the rows of access, trust and equipment."""

from alembic import op

revision, down_revision = "0001", None


def upgrade() -> None:
    op.execute("""
DO $$ BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'baton_runtime') THEN
        CREATE ROLE baton_runtime NOLOGIN;
        GRANT baton_runtime TO CURRENT_USER;
    END IF;
EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
END $$;
CREATE TABLE events (
    position bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, event_id uuid NOT NULL CONSTRAINT events_event_id UNIQUE,
    stream_type text NOT NULL, stream_id uuid NOT NULL, version integer NOT NULL CHECK (version >= 1),
    event_type text NOT NULL, schema_version integer NOT NULL DEFAULT 1 CHECK (schema_version >= 1),
    payload json NOT NULL, principal_id uuid NOT NULL, command_name text NOT NULL, correlation_id uuid NOT NULL,
    causation_id uuid, occurred_at timestamptz NOT NULL, recorded_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    transaction_id xid8 NOT NULL DEFAULT pg_current_xact_id(),
    CONSTRAINT events_stream_version UNIQUE (stream_type, stream_id, version)
);
CREATE INDEX events_commit_order ON events (transaction_id, position);
CREATE TABLE claims (
    kind text NOT NULL, key text NOT NULL, holder_id uuid NOT NULL, CONSTRAINT claims_key PRIMARY KEY (kind, key)
);
CREATE TABLE lookups (kind text NOT NULL, key text NOT NULL, stream_id uuid NOT NULL, PRIMARY KEY (kind, key, stream_id));
CREATE TABLE idempotency (
    principal_id uuid NOT NULL, key text NOT NULL, surface_id uuid NOT NULL, command_name text NOT NULL,
    command_hash text NOT NULL, locked_at timestamptz, result json, position bigint, created_at timestamptz NOT NULL,
    PRIMARY KEY (principal_id, key, surface_id),
    CONSTRAINT in_flight_or_success CHECK ((locked_at IS NULL) <> (result IS NULL))
);
CREATE INDEX idempotency_age ON idempotency (created_at) WHERE result IS NOT NULL;
CREATE TABLE bookmarks (
    follower text PRIMARY KEY, transaction_id xid8 NOT NULL, position bigint NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE TABLE projections (relation text PRIMARY KEY, definition text NOT NULL, built_at timestamptz);
CREATE TABLE entries_conduit_verdicts (
    event_id uuid PRIMARY KEY, conduit_id uuid NOT NULL, logbook_id uuid NOT NULL, actor_id uuid NOT NULL,
    command_name text NOT NULL, decision text NOT NULL, reason text, surface_id uuid NOT NULL,
    determining_policies uuid[] NOT NULL, correlation_id uuid NOT NULL, causation_id uuid,
    occurred_at timestamptz NOT NULL, recorded_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX entries_conduit_verdicts_time ON entries_conduit_verdicts (conduit_id, occurred_at, event_id);
CREATE TABLE access_actor_profile (
    actor_id uuid PRIMARY KEY, name text NOT NULL, email text, phone text, affiliation text, external_id text,
    external_id_scheme text, created_at timestamptz NOT NULL, updated_at timestamptz NOT NULL
);
CREATE TABLE access_subject_binding (
    issuer text NOT NULL, subject text NOT NULL, actor_id uuid NOT NULL, created_at timestamptz NOT NULL,
    PRIMARY KEY (issuer, subject)
);
CREATE INDEX access_subject_binding_actor ON access_subject_binding (actor_id);
CREATE TABLE trust_surface_control (surface_id uuid PRIMARY KEY, visit_id uuid NOT NULL, since_at timestamptz NOT NULL);
CREATE TABLE equipment_mint_sweep (
    sweep_id uuid PRIMARY KEY, principal_id uuid NOT NULL, surface_id uuid NOT NULL, correlation_id uuid NOT NULL,
    external_id_scheme text NOT NULL, facility_code text, limit_ integer NOT NULL, status text NOT NULL,
    scanned integer NOT NULL, minted jsonb NOT NULL, skipped jsonb NOT NULL, failed jsonb NOT NULL,
    created_at timestamptz NOT NULL, finished_at timestamptz
);
CREATE INDEX equipment_mint_sweep_running ON equipment_mint_sweep (created_at) WHERE status = 'Running';
GRANT SELECT, INSERT ON events, entries_conduit_verdicts TO baton_runtime;
GRANT SELECT, INSERT, UPDATE, DELETE ON claims, lookups, idempotency, bookmarks, access_actor_profile,
    access_subject_binding, trust_surface_control, equipment_mint_sweep TO baton_runtime;
GRANT SELECT ON projections TO baton_runtime;""")
