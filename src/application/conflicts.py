"""What every store refuses because somebody else was first."""

from baton.domain.shared.refusals import ConcurrencyError, IdempotencyClaimLostError, IdempotencyConflictError


def lost_race() -> ConcurrencyError:
    """Of a record that was changed since it was read."""
    return ConcurrencyError(
        "Somebody else changed this record first; read it again and repeat the request.", reason="version_taken"
    )


def still_in_flight() -> IdempotencyClaimLostError:
    """Of a repeat that comes while the first request is being worked on."""
    return IdempotencyClaimLostError(
        "A request with this idempotency key is still being worked on; repeat it in a second.", reason="in_flight"
    )


def other_request() -> IdempotencyConflictError:
    """Of a key that stands for another request."""
    return IdempotencyConflictError(
        "This idempotency key was used for another request; take a fresh key for a new request.", reason="other_request"
    )
