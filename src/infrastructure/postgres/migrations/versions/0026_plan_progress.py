"""Where the Bluesky plan of a step is: by its executor, by the worker that asks there, and by a witness."""

from alembic import op

revision, down_revision = "0026", "0025"


def upgrade() -> None:
    op.execute("""
ALTER TABLE conduct_progress ADD COLUMN plan_step json;
ALTER TABLE plan_executors ADD COLUMN activity text;
ALTER TABLE run_witness_contacts
    ADD COLUMN submission_key uuid,
    ADD COLUMN document_uid text,
    ADD COLUMN num_points bigint,
    ADD COLUMN last_document text,
    ADD COLUMN last_document_at timestamptz,
    ADD COLUMN exit_status text,
    ADD COLUMN witness_id uuid;
CREATE INDEX run_witness_contacts_submission ON run_witness_contacts (submission_key) WHERE submission_key IS NOT NULL;""")
