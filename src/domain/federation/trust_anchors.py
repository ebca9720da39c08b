"""Trust anchors: the credentials that a Site's seals may rest on."""

from uuid import UUID

from baton.domain.federation.credential import Credential
from baton.domain.federation.facility import (
    Facility,
    FacilityKind,
    FacilityStatus,
    FacilityTrustAnchorCredentialAdded,
    FacilityTrustAnchorCredentialRemoved,
    facility,
)
from baton.domain.federation.reasons import OptionalReason
from baton.domain.kernel import Call, JudgedVerb, Outcome, Verb
from baton.domain.shared.reads import Reads, required
from baton.domain.shared.refusals import Conflict


class FacilityTrustAnchorCredentialAlreadyPresentError(Conflict, context="federation"):
    """The credential is a trust anchor of this facility already."""


class FacilityTrustAnchorCredentialNotPresentError(Conflict, context="federation"):
    """The credential is no trust anchor of this facility."""


@facility.command(post="/{facility_id}/trust-anchors/add", allowed=[FacilityStatus.ACTIVE])
class AddFacilityTrustAnchorCredential(JudgedVerb[Facility, Credential]):
    """Let a Site's seals rest on this credential."""

    credential_id: UUID

    def gather(self, facility: Facility, call: Call) -> Reads[Credential]:
        return (yield from required(Credential, self.credential_id))

    def decide(self, facility: Facility, call: Call, credential: Credential) -> Outcome:
        if facility.kind is FacilityKind.AREA:
            raise self.cannot("area", "An Area has no trust anchors; add the credential to its Site.")
        if self.credential_id in facility.trust_anchor_credential_ids:
            raise FacilityTrustAnchorCredentialAlreadyPresentError(
                "This credential is a trust anchor of the facility already; nothing to add."
            )
        return [FacilityTrustAnchorCredentialAdded(credential_id=self.credential_id, added_by=call.principal_id)]


@facility.command(post="/{facility_id}/trust-anchors/remove", allowed=[FacilityStatus.ACTIVE], destructive=True)
class RemoveFacilityTrustAnchorCredential(Verb[Facility]):
    """Let no new seal rest on this credential; seals that use it already keep it."""

    credential_id: UUID
    reason: OptionalReason = None

    def decide(self, facility: Facility, call: Call) -> Outcome:
        if self.credential_id not in facility.trust_anchor_credential_ids:
            raise FacilityTrustAnchorCredentialNotPresentError(
                "This credential is no trust anchor of the facility; read the facility for the ones it has."
            )
        return [
            FacilityTrustAnchorCredentialRemoved(
                credential_id=self.credential_id, removed_by=call.principal_id, reason=self.reason
            )
        ]
