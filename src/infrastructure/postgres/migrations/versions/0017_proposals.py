"""Proposals: who approved what each event records, what is proposed, and the groups that tokens told when work began."""

from alembic import op

revision, down_revision = "0017", "0016"


def upgrade() -> None:
    op.execute("""
ALTER TABLE events ADD COLUMN approved_by uuid;
CREATE TABLE proposal_contents (
    proposal_id uuid PRIMARY KEY,
    request jsonb,
    would jsonb NOT NULL,
    answer jsonb,
    refusal jsonb);
GRANT SELECT, INSERT, UPDATE, DELETE ON proposal_contents TO baton_runtime;
ALTER TABLE conducts ADD COLUMN proven_group_ids jsonb NOT NULL DEFAULT '[]';
ALTER TABLE run_conducts ADD COLUMN proven_group_ids jsonb NOT NULL DEFAULT '[]';
ALTER TABLE tasks ADD COLUMN proven_group_ids jsonb NOT NULL DEFAULT '[]';
ALTER TABLE equipment_mint_sweep ADD COLUMN proven_group_ids jsonb NOT NULL DEFAULT '[]';""")
