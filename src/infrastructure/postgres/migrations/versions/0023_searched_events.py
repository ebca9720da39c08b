"""Events are found by who called, by the request, by the time they were recorded at, and by the assets they name."""

from alembic import op

revision, down_revision = "0023", "0022"


def upgrade() -> None:
    op.execute(r"""
CREATE FUNCTION ids_in(payload json) RETURNS text[] LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN ARRAY(
    SELECT found[1] FROM regexp_matches(payload::text, '"([0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})"', 'g') AS found
);
CREATE INDEX events_of_principal ON events (principal_id, transaction_id, position);
CREATE INDEX events_of_request ON events (correlation_id, transaction_id, position);
CREATE INDEX events_recorded ON events (recorded_at, position);
CREATE INDEX events_naming_assets ON events USING gin (ids_in(payload)) WHERE event_type IN (
    'AcquisitionRecorded', 'CautionRegistered', 'ClearanceRegistered', 'FixtureRegistered', 'MountAssetInstalled',
    'MountAssetUninstalled', 'PlanDataRegistrationSet', 'PlanDefined', 'PlanRoleBound', 'PlanWireAdded',
    'PlanWireRemoved', 'ProcedureAbortRequested', 'ProcedureRegistered', 'ProcedureResumed', 'ProcedureStarted',
    'QueueOpened', 'RunStarted', 'SubjectDismounted', 'SubjectMounted', 'SupplyRegistered'
)""")
