"""The edge's own part of authentication: reading the header, and what a refused caller is told."""

from hypothesis import given
from hypothesis import strategies as st

from baton.application.identity import (
    IntrospectionUnavailableError,
    InvalidTokenError,
    KeySetUnavailableError,
    TokenFault,
    UnauthenticatedError,
    bearer_token,
    challenge,
)
from tests.support.domain.world import expect_refusal
from tests.support.tables import for_each

METADATA = "https://baton.example.org/.well-known/oauth-protected-resource"


@for_each("header", ["Bearer t0k.en", "bearer t0k.en", "BEARER \t t0k.en  ", "  Bearer t0k.en"])
def test_a_bearer_token_is_read_whatever_the_case_and_blanks(header: str) -> None:
    assert bearer_token(header) == "t0k.en"


@for_each("header", ["", "Bearer", "Bearer ", "Basic dTpw", "Bearert0k.en", "Bearer two words", "t0k.en", "\n"])
def test_any_other_header_is_malformed(header: str) -> None:
    with expect_refusal("InvalidTokenError", "malformed"):
        bearer_token(header)


def test_a_caller_without_credentials_is_told_where_to_get_them() -> None:
    refusal = UnauthenticatedError()
    assert (refusal.status, refusal.context, refusal.reason) == (401, "edge", None)
    assert "/.well-known/oauth-protected-resource" in refusal.detail
    assert challenge(refusal, METADATA) == f'Bearer realm="baton", resource_metadata="{METADATA}"'


def test_a_refused_token_is_challenged_with_its_reason() -> None:
    assert challenge(InvalidTokenError(TokenFault.EXPIRED), METADATA) == (
        f'Bearer realm="baton", resource_metadata="{METADATA}", error="invalid_token", error_description="expired"'
    )


@given(st.text())
def test_no_metadata_url_breaks_out_of_its_header(url: str) -> None:
    header = challenge(UnauthenticatedError(), url)
    assert header.isascii()
    assert header.isprintable()
    assert header.count('"') == 4
    assert "\\" not in header


@for_each("fault", TokenFault)
def test_every_fault_has_its_sentence(fault: TokenFault) -> None:
    refusal = InvalidTokenError(fault)
    assert (refusal.status, refusal.context, refusal.reason) == (401, "edge", fault.value)
    assert refusal.detail.endswith(".")


def test_the_faults_are_the_documented_ones() -> None:
    assert {fault.value for fault in TokenFault} == {
        "bad_signature",
        "expired",
        "not_yet_valid",
        "wrong_audience",
        "wrong_issuer",
        "malformed",
        "not_access_token_type",
        "unknown_subject",
        "introspection_inactive",
        "unsupported_algorithm",
    }


@for_each("refusal", [KeySetUnavailableError(), IntrospectionUnavailableError()])
def test_an_unreachable_provider_asks_for_patience(refusal: KeySetUnavailableError) -> None:
    assert (refusal.status, refusal.context, refusal.retry_after) == (503, "edge", 5)
