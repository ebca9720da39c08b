"""Leases: who leads says so every second, and what a former leader still writes is refused as a whole. And every process
reports how far its clock is from the database's."""

from alembic import op

revision, down_revision = "0018", "0017"


def upgrade() -> None:
    # A renewal does not wait for writes of the leader, since it changes no key; a new term does.
    op.execute("""
CREATE TABLE leases (
    lock bigint PRIMARY KEY,
    term bigint NOT NULL,
    backend_pid integer NOT NULL,
    renewed_at timestamptz NOT NULL,
    UNIQUE (lock, term));
GRANT SELECT, INSERT, UPDATE ON leases TO baton_runtime;
CREATE FUNCTION require_lease(held_lock bigint, held_term bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM leases WHERE lock = held_lock AND term = held_term FOR KEY SHARE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'another process leads' USING ERRCODE = 'object_not_in_prerequisite_state';
    END IF;
END $$;
GRANT EXECUTE ON FUNCTION require_lease TO baton_runtime;
CREATE FUNCTION monitor_leads(wanted_term bigint) RETURNS boolean LANGUAGE sql AS $$
    SELECT wanted_term IS NULL OR EXISTS (
        SELECT FROM leases WHERE lock = x'6261746F6E05'::bigint AND term = wanted_term
        AND renewed_at > clock_timestamp() - interval '2.5 s')
$$;
GRANT EXECUTE ON FUNCTION monitor_leads TO baton_runtime;
ALTER TABLE process_reports ADD COLUMN clock_skew double precision NOT NULL DEFAULT 0;""")
