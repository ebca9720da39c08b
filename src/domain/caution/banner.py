"""Which cautions somebody about to work with these assets, procedures, recipes and plans should see.

They are candidates by look-up rows and judged on their folded streams, and they never refuse anything.
"""

from collections.abc import Collection, Iterable
from datetime import datetime
from uuid import UUID

from baton.domain.caution.caution import (
    TARGETED,
    Caution,
    CautionCategory,
    CautionSeverity,
    CautionTarget,
    CautionTargetKind,
)
from baton.domain.kernel import Value
from baton.domain.shared.reads import Reads, every, members_of
from baton.domain.shared.text import FreeText

EXCERPT = 200
"""How many characters of a text a banner shows."""


class AcknowledgedCaution(Value):
    """A caution as it is shown before work starts, and kept by what was started."""

    caution_id: UUID
    target_kind: CautionTargetKind
    target_id: UUID
    category: CautionCategory
    severity: CautionSeverity
    text_excerpt: FreeText
    workaround_excerpt: FreeText


def cautions_in_scope(
    bound_asset_ids: Collection[UUID], ancestor_ids: Collection[UUID], work: Collection[CautionTarget]
) -> Reads[tuple[Caution, ...]]:
    """The cautions on any of these, for `banner` to choose from; `work` is what else is worked with or by."""
    assets = (CautionTarget(kind=CautionTargetKind.ASSET, id=id) for id in (*bound_asset_ids, *ancestor_ids))
    keys = {target.key for target in (*assets, *work)}
    if not keys:
        return ()
    found = yield from every(Caution, (yield from members_of(TARGETED, *sorted(keys))))
    return tuple(found.values())


def in_force(
    cautions: Iterable[Caution],
    bound_asset_ids: Collection[UUID],
    ancestor_ids: Collection[UUID],
    work: Collection[CautionTarget],
    now: datetime,
    min_severity: CautionSeverity = CautionSeverity.CAUTION,
) -> tuple[Caution, ...]:
    """Those of the cautions that are in effect on these, the most severe first, then in order of registration.

    Above a bound asset only what propagates to children counts.
    """

    def applies(caution: Caution) -> bool:
        if caution.target.kind is not CautionTargetKind.ASSET:
            return caution.target in work
        inherited = caution.propagate_to_children and caution.target.id in ancestor_ids
        return inherited or caution.target.id in bound_asset_ids

    severities = min_severity.and_above()
    chosen = (one for one in cautions if one.severity in severities and one.in_effect(now) and applies(one))
    return tuple(sorted(chosen, key=lambda one: (-severities.index(one.severity), one.registered_at, one.id)))


def banner(
    cautions: Iterable[Caution],
    bound_asset_ids: Collection[UUID],
    ancestor_ids: Collection[UUID],
    work: Collection[CautionTarget],
    now: datetime,
    min_severity: CautionSeverity = CautionSeverity.CAUTION,
) -> tuple[AcknowledgedCaution, ...]:
    """What is shown of the cautions in force."""
    shown = in_force(cautions, bound_asset_ids, ancestor_ids, work, now, min_severity)
    return tuple(
        AcknowledgedCaution(
            caution_id=one.id,
            target_kind=one.target.kind,
            target_id=one.target.id,
            category=one.category,
            severity=one.severity,
            text_excerpt=one.text[:EXCERPT],
            workaround_excerpt=one.workaround[:EXCERPT],
        )
        for one in shown
    )
