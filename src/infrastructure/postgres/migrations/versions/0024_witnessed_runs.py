"""Runs that happen elsewhere and are recorded here: when their witnesses last gave word, and the assets that they name."""

from alembic import op

revision, down_revision = "0024", "0023"


def upgrade() -> None:
    op.execute("""
CREATE TABLE run_witness_contacts (
    run_id uuid PRIMARY KEY,
    heard_at timestamptz NOT NULL,
    lag_seconds double precision NOT NULL,
    refused bigint NOT NULL,
    dropped bigint NOT NULL,
    events json NOT NULL
);
GRANT SELECT, INSERT, UPDATE, DELETE ON run_witness_contacts TO baton_runtime;
DROP INDEX events_naming_assets;
CREATE INDEX events_naming_assets ON events USING gin (ids_in(payload)) WHERE event_type IN (
    'AcquisitionRecorded', 'CautionRegistered', 'ClearanceRegistered', 'FixtureRegistered', 'MountAssetInstalled',
    'MountAssetUninstalled', 'PlanDataRegistrationSet', 'PlanDefined', 'PlanRoleBound', 'PlanWireAdded',
    'PlanWireRemoved', 'ProcedureAbortRequested', 'ProcedureRegistered', 'ProcedureResumed', 'ProcedureStarted',
    'QueueOpened', 'RunStarted', 'RunWitnessChanged', 'RunWitnessed', 'SubjectDismounted', 'SubjectMounted',
    'SupplyRegistered'
);""")
