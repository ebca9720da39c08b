"""Key claims: an append that finishes an idempotency key fails as a whole when the claim on the key was taken over."""

from alembic import op

revision, down_revision = "0011", "0010"


def upgrade() -> None:
    op.execute("""
CREATE FUNCTION require_key_claim(held boolean) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF NOT held THEN
        RAISE EXCEPTION 'the idempotency key was taken over' USING ERRCODE = 'no_data_found';
    END IF;
END $$;
GRANT EXECUTE ON FUNCTION require_key_claim TO baton_runtime;""")
