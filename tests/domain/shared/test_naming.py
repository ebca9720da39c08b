"""Members that name what ids refer to keep their published names; sentences use the right plural."""

from baton.domain.shared.field_faults import needed_text
from baton.domain.shared.naming import name_member, plural
from tests.support.tables import for_each


@for_each(
    ("field", "member"),
    [("asset_ids", "assets"), ("needed_family_ids", "needed_familys"), ("policy_ids", "policys"), ("plan_id", "plan")],
)
def test_names_stand_under_the_published_members(field: str, member: str) -> None:
    assert name_member(field) == member


def test_faults_and_counts_use_the_same_plurals() -> None:
    assert needed_text("family_ids") == "Families are needed"
    assert [plural(noun) for noun in ("surface", "visit presence", "day", "launch")] == [
        "surfaces",
        "visit presence",
        "days",
        "launches",
    ]
