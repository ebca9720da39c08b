"""Data: rows of long work of one piece, of catalogue entries, of manifests and of artifacts that were received; look-up rows
of the calibration revisions there are. What was signed for a peer and not sent is signed anew, with its terms."""

from alembic import op

revision, down_revision = "0015", "0014"


def upgrade() -> None:
    op.execute("""
CREATE TABLE tasks (
    work_id uuid PRIMARY KEY, kind text NOT NULL, principal_id uuid NOT NULL, surface_id uuid NOT NULL,
    correlation_id uuid NOT NULL, request jsonb NOT NULL, ids jsonb NOT NULL, created_at timestamptz NOT NULL,
    status text NOT NULL, done bigint NOT NULL, total bigint, notes jsonb NOT NULL, answer jsonb, refusal jsonb
);
CREATE INDEX tasks_running ON tasks (kind, created_at) WHERE status = 'Running';
GRANT SELECT, INSERT, UPDATE, DELETE ON tasks TO baton_runtime;
CREATE TABLE received_artifact_document (received_artifact_id uuid PRIMARY KEY, document text NOT NULL);
GRANT SELECT, INSERT, UPDATE, DELETE ON received_artifact_document TO baton_runtime;
CREATE TABLE edition_manifests (
    content_hash text PRIMARY KEY, edition_id uuid NOT NULL, media_type text NOT NULL, content text NOT NULL
);
GRANT SELECT, INSERT, UPDATE ON edition_manifests TO baton_runtime;
CREATE TABLE catalogue_entries (
    entry_id uuid PRIMARY KEY, dataset_id uuid NOT NULL, catalogue text NOT NULL, status text NOT NULL,
    created_at timestamptz NOT NULL, asked bigint NOT NULL, attempts bigint NOT NULL, entered_at timestamptz, last_error text
);
CREATE INDEX catalogue_entries_order ON catalogue_entries (created_at, entry_id);
CREATE INDEX catalogue_entries_dataset ON catalogue_entries (dataset_id);
CREATE INDEX catalogue_entries_open ON catalogue_entries (catalogue, status) WHERE status <> 'Entered';
GRANT SELECT, INSERT, UPDATE, DELETE ON catalogue_entries TO baton_runtime;
ALTER TABLE conducts ADD COLUMN takeover_count int NOT NULL DEFAULT 0;
UPDATE calibration_publication SET signature = NULL, published_at = NULL WHERE status = 'Running';
INSERT INTO lookups (kind, key, stream_id)
SELECT 'calibration-revision', payload ->> 'revision_id', stream_id FROM events
WHERE stream_type = 'Calibration' AND event_type = 'CalibrationRevisionAppended' ON CONFLICT DO NOTHING;""")
