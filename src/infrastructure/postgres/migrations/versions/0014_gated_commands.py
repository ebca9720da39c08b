"""Gated commands: an append that rests on gates fails as a whole when something that they were judged by has changed."""

from alembic import op

revision, down_revision = "0014", "0013"


def upgrade() -> None:
    # The lock comes before the look, which sees everything that is committed by then because the function is volatile:
    # appends to streams that gates read share the lock, so none of them can be committed between the look and this commit.
    op.execute("""
CREATE FUNCTION require_unchanged(types text[], ids uuid[], versions integer[], look_ups jsonb) RETURNS void
LANGUAGE plpgsql VOLATILE SET lock_timeout = '5s' AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('gates', 0));
    IF EXISTS (
        SELECT FROM unnest(types, ids, versions) AS seen (of_type, of_id, last_version)
        JOIN events ON stream_type = of_type AND stream_id = of_id AND version > last_version
    ) OR EXISTS (
        SELECT FROM jsonb_to_recordset(look_ups) AS seen (kind text, keys text[], ids uuid[])
        WHERE seen.ids IS DISTINCT FROM (
            SELECT coalesce(array_agg(DISTINCT stream_id ORDER BY stream_id), '{}') FROM lookups
            WHERE lookups.kind = seen.kind AND key = ANY(seen.keys)
        )
    ) THEN
        RAISE EXCEPTION 'what was judged has changed' USING ERRCODE = 'serialization_failure';
    END IF;
END $$;
GRANT EXECUTE ON FUNCTION require_unchanged TO baton_runtime;""")
