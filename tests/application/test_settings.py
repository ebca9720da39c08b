"""Settings from the environment, the combinations no process starts with, and what is shown of them."""

import json
from itertools import product
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from pydantic import ValidationError
from pydantic_settings import SettingsError

from baton.application.boot_guards import boot_objections, bootstrap_awaits_binding, bootstrap_objections, idle_agents
from baton.application.identity import SIGNATURE_ALGORITHMS, IdentityProvider, provider_objections
from baton.application.plant import Substrate
from baton.application.settings import RecordedSettings, Settings, shown_settings
from baton.domain.access.actor import ActorKind, seeded_id
from baton.domain.kernel import NIL
from baton.domain.trust.surface import SYSTEM_HTTP
from tests.support.tables import for_each

MIRA = UUID("0197a100-0000-7000-8000-000000000001")
ROBOT = UUID("0197a100-0000-7000-8000-000000000002")
ISSUER = "https://id.example.org"
PROVIDER = {
    "issuer": ISSUER,
    "jwks_url": "https://id.example.org/keys",
    "audiences": {str(SYSTEM_HTTP): "https://baton.example.org"},
    "subject_bindings": [{"subject": "mira-77", "actor_id": str(MIRA)}],
}
ASKED = {
    "introspection_url": "https://id.example.org/introspect",
    "introspection_client_id": "baton",
    "introspection_client_secret": "s3cret",
}
SOUND = {
    "app_env": "production",
    "require_authenticated_principal": True,
    "authorization_mode": "policy",
    "identity_providers": [PROVIDER],
    "compute_substrate": "local_process",
    "compute_job_directory": "/var/lib/baton/jobs",
}

SCICAT = {
    "scicat_address": "https://scicat.example/api/v3",
    "scicat_token": "t0ken",
    "scicat_owner_group": "bl7",
    "scicat_contact_email": "data@lumen.example",
}
DATACITE = {
    "pid_minter": "datacite",
    "datacite_prefix": "10.70000",
    "datacite_repository_id": "FAC.BL7",
    "datacite_password": "s3cret",
}


@pytest.fixture(autouse=True)
def _bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in Settings.model_fields:
        monkeypatch.delenv(name.upper(), raising=False)


def provider(**changes: Any) -> IdentityProvider:
    return IdentityProvider.model_validate({**PROVIDER, **changes})


def objections(stdio: bool = False, **settings: Any) -> list[str]:
    return boot_objections(Settings(**settings), stdio=stdio)


def test_defaults_are_those_of_development() -> None:
    settings = Settings()
    assert (settings.app_env, settings.production, settings.enforced) == ("development", False, False)
    assert (settings.require_authenticated_principal, settings.identity_providers) == (False, ())
    assert (settings.database_url, settings.temporal_address, settings.temporal_namespace) == (None, None, "default")
    assert (settings.max_request_body_size_bytes, settings.enclosure_observation_ttl_seconds) == (8388608, 120)
    assert (settings.idempotency_lock_stale_seconds, settings.idempotency_ttl_hours) == (60, 24)
    assert (settings.database_pool_size, settings.mcp_toolset, settings.log_level) == (16, "operator", "INFO")
    assert settings.self_facility_code == "facility"
    assert boot_objections(settings) == []


def test_settings_are_environment_variables_of_their_name(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "APP_ENV": "  Staging ",
        "AUTHORIZATION_MODE": "policy",
        "REQUIRE_AUTHENTICATED_PRINCIPAL": "true",
        "IDENTITY_PROVIDERS": json.dumps([{**PROVIDER, **ASKED}]),
        "COMPUTE_SUBSTRATE": "local_process",
        "COMPUTE_JOB_DIRECTORY": "/var/lib/baton/jobs",
        "BOOTSTRAP_PRINCIPAL_ID": str(MIRA),
        "MCP_TOOLSET": "auditor",
        "PUBLIC_BASE_URL": "https://baton.example.org/",
        "IDEMPOTENCY_TTL_HOURS": "0",
        "LOG_LEVEL": "debug",
        "TEMPORAL_ADDRESS": "",
    }.items():
        monkeypatch.setenv(name, value)
    settings = Settings()
    assert (settings.app_env, settings.production, settings.enforced) == ("staging", True, True)
    assert (settings.mcp_toolset, settings.idempotency_ttl_hours, settings.log_level) == ("auditor", 0, "DEBUG")
    assert (settings.public_base_url, settings.temporal_address) == ("https://baton.example.org", None)
    configured = settings.identity_providers[0]
    assert (configured.issuer, configured.allowed_algorithms) == (ISSUER, ("RS256", "ES256"))
    assert (configured.require_access_token_type, configured.principal_kind) == (True, ActorKind.HUMAN)
    assert configured.introspection_cache_ttl_seconds == 30
    assert (configured.audiences[SYSTEM_HTTP], configured.subject_bindings[0].actor_id) == (
        "https://baton.example.org",
        MIRA,
    )
    assert boot_objections(settings) == []


def test_a_dotenv_file_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".env").write_text("APP_ENV=production\n")
    monkeypatch.chdir(tmp_path)
    assert Settings().app_env == "development"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("AUTHORIZATION_MODE", "lenient"),
        ("IDEMPOTENCY_LOCK_STALE_SECONDS", "0"),
        ("IDEMPOTENCY_TTL_HOURS", "-1"),
        ("ENCLOSURE_OBSERVATION_TTL_SECONDS", "0"),
        ("ENCLOSURE_OBSERVATION_TTL_SECONDS", "86401"),
        ("RUN_SUPERVISOR_TICK_SECONDS", "86401"),
        ("CLEARANCE_EXPIRER_TICK_SECONDS", "86401"),
        ("RUN_SUPERVISOR_STOP_AFTER_SECONDS", "31536001"),
        ("DATABASE_POOL_SIZE", "0"),
        ("MAX_REQUEST_BODY_SIZE_BYTES", "0"),
        ("BOOTSTRAP_PRINCIPAL_ID", "mira"),
        ("PUBLIC_BASE_URL", "baton.example.org"),
        ("LANDING_PAGE_TEMPLATE", "https://example.org/assets"),
        ("SELF_FACILITY_CODE", "My Facility"),
        ("LOG_LEVEL", "loud"),
        ("MCP_TOOLSET", "some"),
        ("MCP_TOOLSET", "essential"),
        ("VERIFIER_ALLOWED_HOSTS", '["https://storage.example"]'),
        ("VERIFIER_BUDGET_SECONDS", "0"),
        ("REQUIRE_AUTHENTICATED_PRINCIPAL", "perhaps"),
    ],
)
def test_a_value_out_of_bounds_is_refused(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(ValidationError, match=name.lower()):
        Settings()


@pytest.mark.parametrize(
    "configured",
    [
        '[{"issuer": "https://id.example.org", "introspection_client_secret": "s3cret", "surprise": 1}]',
        '[{"issuer": "", "introspection_client_secret": "s3cret"}]',
        '[{"issuer": "x", "introspection_client_secret": {"value": "s3cret"}}]',
        '[{"issuer": "x", "introspection_client_secret": "s3cret"',
    ],
)
def test_a_provider_of_the_wrong_shape_is_refused_without_showing_its_secret(
    configured: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IDENTITY_PROVIDERS", configured)
    with pytest.raises((ValidationError, SettingsError)) as caught:
        Settings()
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(
    "changes",
    [
        {"introspection_cache_ttl_seconds": 0.5},
        {"introspection_cache_ttl_seconds": float("nan")},
        {"introspection_cache_ttl_seconds": float("inf")},
        {"audiences": {"http": "https://baton.example.org"}},
        {"audiences": {str(SYSTEM_HTTP): ""}},
        {"principal_kind": "robot"},
        {"subject_bindings": [{"subject": "", "actor_id": str(MIRA)}]},
        {"issuer": "i" * 501},
    ],
    ids=str,
)
def test_a_provider_with_a_value_out_of_bounds_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match=next(iter(changes))):
        provider(**changes)


@for_each(
    ("chosen", "four_eyes"),
    [
        ({}, False),
        ({"app_env": "test"}, False),
        ({"app_env": "staging"}, True),
        ({"app_env": "prod", "clearance_four_eyes": False}, False),
        ({"clearance_four_eyes": True}, True),
    ],
)
def test_the_author_of_a_form_does_not_judge_it_in_production_unless_that_is_said(
    chosen: dict[str, Any], four_eyes: bool
) -> None:
    assert Settings(**chosen).four_eyes is four_eyes


@for_each(
    ("chosen", "claims"),
    [
        ({}, False),
        ({"app_env": "staging"}, True),
        ({"app_env": "prod", "witnessed_runs_claim": False}, False),
        ({"witnessed_runs_claim": True}, True),
    ],
)
def test_runs_elsewhere_keep_conducts_from_their_devices_in_production_unless_that_is_said(
    chosen: dict[str, Any], claims: bool
) -> None:
    assert Settings(**chosen).witnessed_claims is claims


@for_each(
    ("chosen", "allowed"),
    [
        ({}, True),
        ({"app_env": "test"}, True),
        ({"app_env": "staging"}, False),
        ({"app_env": "prod", "unowned_signals": "allow"}, True),
        ({"unowned_signals": "refuse"}, False),
    ],
)
def test_signals_without_an_owner_are_not_written_in_production_unless_that_is_said(
    chosen: dict[str, Any], allowed: bool
) -> None:
    assert Settings(**chosen).unowned_signals_allowed is allowed


@for_each(
    ("chosen", "required"),
    [
        ({}, False),
        ({"app_env": "staging"}, True),
        ({"app_env": "prod", "seal_signatures": "optional"}, False),
        ({"seal_signatures": "required"}, True),
    ],
)
def test_seals_take_nothing_unsigned_in_production_unless_that_is_said(chosen: dict[str, Any], required: bool) -> None:
    assert Settings(**chosen).seal_signatures_required is required


@for_each("tier", ["prod", "production", "staging"])
def test_a_production_tier_starts_when_all_is_sound(tier: str) -> None:
    assert objections(**{**SOUND, "app_env": tier}) == []


GUARDED: dict[str, tuple[dict[str, Any], list[str]]] = {
    "production without authentication": (
        {**SOUND, "authorization_mode": "permissive", "require_authenticated_principal": False},
        ["answers authenticated callers only", "lets every caller do everything"],
    ),
    "authentication without a provider": ({"require_authenticated_principal": True}, ["would lock everyone out"]),
    "enforcement without authentication": ({"authorization_mode": "policy"}, ["anybody could claim to be"]),
    "enforcement without authentication in production": (
        {**SOUND, "require_authenticated_principal": False},
        ["answers authenticated callers only", "anybody could claim to be"],
    ),
    "permissive in production": ({**SOUND, "authorization_mode": "permissive"}, ["lets every caller do everything"]),
    "an insecure key set flag in production": (
        {**SOUND, "identity_providers": [{**PROVIDER, "allow_insecure_jwks_url": True}]},
        ["sets allow_insecure_jwks_url"],
    ),
    "an insecure introspection flag in production": (
        {**SOUND, "identity_providers": [{**PROVIDER, "allow_insecure_introspection_url": True}]},
        ["sets allow_insecure_introspection_url"],
    ),
    "made-up programs in production": ({**SOUND, "compute_substrate": "in_memory"}, ["makes up what programs bring"]),
    "a program without its place": ({**SOUND, "compute_programs": ["/bin/recon", "recon"]}, ["lists recon, which is no"]),
    "a program at a crooked place": ({**SOUND, "compute_programs": ["/bin/../bin/sh"]}, ["lists /bin/../bin/sh"]),
    "data roots that are no plain paths": (
        {"data_roots": ("data", "/data/../etc", "/")},
        ["DATA_ROOTS lists data,", "DATA_ROOTS lists /data/../etc,", "DATA_ROOTS lists /,"],
    ),
    "programs run by root": ({"compute_user": "root"}, ["COMPUTE_USER=root"]),
    "made-up identifiers in production": ({**SOUND, "pid_minter": "development"}, ["makes identifiers up"]),
    "a registry without an account": (
        {"pid_minter": "datacite", "public_base_url": "https://baton.example"},
        ["set DATACITE_PREFIX, DATACITE_REPOSITORY_ID, DATACITE_PASSWORD"],
    ),
    "a catalogue in nobody's name": (
        {"scicat_address": "https://scicat.example/api/v3", "scicat_owner_group": "bl7"},
        ["set SCICAT_TOKEN, SCICAT_CONTACT_EMAIL."],
    ),
    "a catalogue's token in the clear": (
        {**SOUND, **SCICAT, "scicat_address": "http://scicat.example/api/v3"},
        ["SCICAT_ADDRESS sends a token without https"],
    ),
    "links to nothing": ({"tiled_directory": "tiled"}, ["no absolute path", "TILED_DIRECTORY links files under DATA_ROOTS"]),
    "identifiers that lead nowhere": (DATACITE, ["set PUBLIC_BASE_URL, or LANDING_PAGE_TEMPLATES"]),
    "identifiers that lead to a path": (
        {**DATACITE, "landing_page_template": "/assets/{asset_id}"},
        ["LANDING_PAGE_TEMPLATE is no absolute URL"],
    ),
    "a registry's password in the clear": (
        {**SOUND, **DATACITE, "public_base_url": "https://baton.example", "datacite_address": "http://api.example"},
        ["DATACITE_ADDRESS sends a password without https"],
    ),
    "peers reached in the clear": (
        {
            **SOUND,
            "federation_peers": {"alpha": {"address": "http://alpha.example"}, "near": {"address": "http://[::1]:80"}},
        },
        ["FEDERATION_PEERS reaches alpha without https"],
    ),
    "an account of two peers": (
        {"federation_peers": {"alpha": {"accounts": [str(ROBOT)]}, "gamma": {"accounts": [str(ROBOT)]}}},
        [f"FEDERATION_PEERS lists the account {ROBOT} of more than one peer"],
    ),
    "peers that are none": (
        {"federation_peers": {"facility": {"address": "http://me"}, "alpha": {"address": "https://u:p@alpha.example"}}},
        ["lists facility, which is this facility itself", "has a password in the address of alpha"],
    ),
    "the service itself as administrator": ({"bootstrap_principal_id": NIL}, ["BOOTSTRAP_PRINCIPAL_ID is the nil UUID"]),
    "an agent as administrator": (
        {"bootstrap_principal_id": seeded_id(1)},
        ["BOOTSTRAP_PRINCIPAL_ID is 019a0000-0000-7000-8000-000000000001, which is an agent of the service itself"],
    ),
    "the service itself on stdio": ({"mcp_stdio_principal_id": NIL}, ["MCP_STDIO_PRINCIPAL_ID is the nil UUID"]),
    "a provider that cannot be used": ({"identity_providers": [{**PROVIDER, "audiences": {}}]}, ["has no audiences"]),
}


@for_each("case", GUARDED)
def test_no_process_starts_with(case: str) -> None:
    settings, expected = GUARDED[case]
    found = objections(**settings)
    assert len(found) == len(expected), found
    for sentence, words in zip(found, expected, strict=True):
        assert words in sentence
        assert sentence.endswith(".")


ACCEPTED: dict[str, dict[str, Any]] = {
    "tests enforce without authentication": {"app_env": "test", "authorization_mode": "policy"},
    "production is permissive when that is meant": {
        **SOUND,
        "authorization_mode": "permissive",
        "allow_permissive_authz": True,
    },
    "development uses insecure URLs": {
        "identity_providers": [{**PROVIDER, "jwks_url": "http://127.0.0.1:9000/keys", "allow_insecure_jwks_url": True}]
    },
    "development has a provider and does not insist on it": {"identity_providers": [PROVIDER]},
    "development makes identifiers up": {"pid_minter": "development"},
    "production enters datasets into catalogues": {
        **SOUND,
        **SCICAT,
        "tiled_directory": "/srv/tiled",
        "data_roots": ["/data"],
    },
    "production registers identifiers": {**SOUND, **DATACITE, "landing_page_template": "https://id.example/{asset_id}"},
}


@for_each("case", ACCEPTED)
def test_a_process_starts_though(case: str) -> None:
    assert objections(**ACCEPTED[case]) == []


@for_each(
    ("tier", "required", "mode", "allowed", "configured"),
    list(product(["prod", "development", "test"], [True, False], ["policy", "permissive"], [True, False], [True, False])),
)
def test_the_guards_hold_in_every_combination(tier: str, required: bool, mode: str, allowed: bool, configured: bool) -> None:
    enforced, production = mode == "policy", tier == "prod"
    must_not_start = (
        (production and not required)
        or (required and not configured)
        or (enforced and tier != "test" and not required)
        or (production and not enforced and not allowed)
    )
    found = objections(
        app_env=tier,
        require_authenticated_principal=required,
        authorization_mode=mode,
        allow_permissive_authz=allowed,
        identity_providers=[PROVIDER] if configured else [],
        compute_substrate="local_process",
        compute_job_directory="/var/lib/baton/jobs",
    )
    assert bool(found) is must_not_start, found


def test_stdio_needs_a_principal_where_policies_are_enforced() -> None:
    enforcing = {"app_env": "test", "authorization_mode": "policy"}
    assert objections(**enforcing) == []
    assert ["MCP_STDIO_PRINCIPAL_ID" in sentence for sentence in objections(stdio=True, **enforcing)] == [True]
    assert objections(stdio=True, **enforcing, mcp_stdio_principal_id=MIRA) == []
    assert objections(stdio=True) == []


def test_stdio_is_not_served_in_production() -> None:
    found = objections(stdio=True, **SOUND, mcp_stdio_principal_id=MIRA)
    assert ["not served under APP_ENV=production" in sentence for sentence in found] == [True]


@for_each(
    ("changes", "bootstrap", "stored", "objected"),
    [
        ({}, MIRA, [], False),
        ({}, ROBOT, [], True),
        ({}, ROBOT, [MIRA], True),
        ({}, ROBOT, [MIRA, ROBOT], False),
        ({}, None, [], False),
        ({"app_env": "development"}, ROBOT, [], False),
        ({"authorization_mode": "permissive"}, ROBOT, [], False),
    ],
)
def test_a_bootstrap_principal_nobody_can_act_as_is_refused_in_production(
    changes: dict[str, Any], bootstrap: UUID | None, stored: list[UUID], objected: bool
) -> None:
    settings = Settings(**{**SOUND, **changes, "bootstrap_principal_id": bootstrap})
    assert bool(bootstrap_objections(settings, stored)) is objected
    assert bootstrap_awaits_binding(settings) is bool(bootstrap_objections(settings, []))


SIGN_IN = {
    "authorization_url": "https://id.example.org/authorize",
    "token_url": "https://id.example.org/token",
    "public_client_id": "docs",
}
REFUSED_PROVIDERS: dict[str, tuple[dict[str, Any], str]] = {
    "no URL of either kind": ({"jwks_url": None}, "neither jwks_url nor introspection_url"),
    "introspection without an id": ({**ASKED, "introspection_client_id": None}, "without credentials"),
    "introspection without a secret": ({**ASKED, "introspection_client_secret": None}, "without credentials"),
    "introspection with an empty secret": ({**ASKED, "introspection_client_secret": ""}, "without credentials"),
    "no audience": ({"audiences": {}}, "no audiences"),
    "a subject bound to the service itself": (
        {"subject_bindings": [{"subject": "mira-77", "actor_id": str(NIL)}]},
        "nil UUID",
    ),
    "a subject bound to an agent": (
        {"subject_bindings": [{"subject": "mira-77", "actor_id": str(seeded_id(3))}]},
        f"binds a subject to {seeded_id(3)}, which is an agent of the service itself; choose another id",
    ),
    "a key set over http": ({"jwks_url": "http://id.example.org/keys"}, "jwks_url that is no https URL"),
    "introspection over http": (
        {**ASKED, "introspection_url": "http://id.example.org/x"},
        "introspection_url that is no https",
    ),
    "the other URL's insecure flag": (
        {"jwks_url": "http://id.example.org/keys", "allow_insecure_introspection_url": True},
        "jwks_url that is no https URL",
    ),
    "a key set in a file": ({"jwks_url": "file:///etc/keys", "allow_insecure_jwks_url": True}, "no https URL"),
    "a key set nowhere": ({"jwks_url": "https://"}, "no https URL"),
    "a key set at a broken address": ({"jwks_url": "https://[id.example.org/keys"}, "no https URL"),
    "a key set at no port": ({"jwks_url": "https://id.example.org:port/keys"}, "no https URL"),
    "no algorithm": ({"allowed_algorithms": []}, "empty list of allowed_algorithms"),
    "an algorithm nobody knows": ({"allowed_algorithms": ["RS265"]}, "allows RS265"),
    "a page without a client": ({**SIGN_IN, "public_client_id": None}, "cannot be signed in at from a page"),
    "a page without a token": ({**SIGN_IN, "token_url": None}, "cannot be signed in at from a page"),
    "signing in over http": ({**SIGN_IN, "token_url": "http://id.example.org/token"}, "sign-in addresses that are no https"),
}


@for_each("case", REFUSED_PROVIDERS)
def test_a_provider_is_refused_for(case: str) -> None:
    changes, words = REFUSED_PROVIDERS[case]
    found = provider_objections([provider(**changes)])
    assert [words in sentence and f"provider 1 ({ISSUER})" in sentence for sentence in found] == [True], found


@for_each("algorithm", ["none", "None", "HS256", "HS384", "HS512"])
def test_no_provider_is_believed_without_a_public_key(algorithm: str) -> None:
    assert algorithm not in SIGNATURE_ALGORITHMS
    found = provider_objections([provider(allowed_algorithms=["ES256", algorithm])])
    assert [f"allows {algorithm};" in sentence for sentence in found] == [True]


def test_one_issuer_has_one_entry() -> None:
    found = provider_objections([provider(), provider(subject_bindings=[])])
    assert [f"lists the issuer {ISSUER} 2 times" in sentence for sentence in found] == [True]


def test_a_trailing_slash_makes_another_issuer() -> None:
    assert list(provider_objections([provider(), provider(issuer=f"{ISSUER}/")])) == []


def test_only_one_provider_is_asked_about_tokens_that_name_no_issuer() -> None:
    found = provider_objections([provider(**ASKED), provider(**ASKED, issuer="https://other.example.org")])
    assert ["More than one identity provider has an introspection_url" in sentence for sentence in found] == [True]


def test_a_subject_is_bound_once_and_the_objection_does_not_repeat_it() -> None:
    doubled = [{"subject": "mira-77", "actor_id": str(MIRA)}, {"subject": "mira-77", "actor_id": str(ROBOT)}]
    found = provider_objections([provider(subject_bindings=doubled)])
    assert [f"binds a subject of {ISSUER} more than once" in sentence for sentence in found] == [True]
    assert "mira-77" not in str(found)


def test_the_same_subject_of_two_issuers_may_be_two_actors() -> None:
    other = provider(issuer="https://other.example.org", subject_bindings=[{"subject": "mira-77", "actor_id": str(ROBOT)}])
    assert list(provider_objections([provider(), other])) == []


def test_what_opens_a_peer_is_not_shown() -> None:
    peers = {"alpha": {"address": "https://reader:s3cret@alpha.example/", "token": "t0ken"}}
    settings = Settings(federation_peers=peers)
    shown = shown_settings(settings)
    assert shown["FEDERATION_PEERS"] == {
        "alpha": {"address": "https://***@alpha.example", "token": "***", "facility_id": None, "accounts": []}
    }
    assert RecordedSettings.of(shown).federation_peers.keys() == {"alpha"}
    assert "t0ken" not in repr(settings)
    assert "s3cret" not in repr(settings)


def test_every_setting_is_shown_and_no_secret() -> None:
    settings = Settings(
        **{**SOUND, **DATACITE, **SCICAT, "identity_providers": [{**PROVIDER, **ASKED}]},
        database_url="postgresql://baton:hunter2@db.example.org/baton",
    )
    shown = shown_settings(settings)
    assert set(shown) == {name.upper() for name in Settings.model_fields}
    assert shown["DATABASE_URL"] == "postgresql://***@db.example.org/baton"
    assert shown["IDENTITY_PROVIDERS"][0]["issuer"] == ISSUER
    assert shown["IDENTITY_PROVIDERS"][0]["introspection_client_secret"] == "***"
    assert shown["IDENTITY_PROVIDERS"][0]["subject_bindings"] == [{"subject": "***", "actor_id": str(MIRA), "kind": None}]
    for text in (json.dumps(shown), repr(settings)):
        assert not any(secret in text for secret in ("hunter2", "s3cret", "t0ken", "mira-77"))


@for_each(
    ("url", "shown"),
    [
        ("postgresql:///baton?host=/run/postgresql", "postgresql:///baton?host=/run/postgresql"),
        ("postgresql://db/baton", "postgresql://db/baton"),
        ("postgresql://u:p/w@x@db:5432/baton", "postgresql://***@db:5432/baton"),
        (
            "postgresql://db/baton?user=u&password=p&sslmode=require",
            "postgresql://db/baton?user=u&password=***&sslmode=require",
        ),
        ("postgresql://db/baton?sslpassword=p", "postgresql://db/baton?sslpassword=***"),
        ("host=db user=u password = 'p w\\'s' dbname=baton", "host=db user=u password = *** dbname=baton"),
        ("host=db password=pw", "host=db password=***"),
    ],
)
def test_a_database_is_shown_without_its_password(url: str, shown: str) -> None:
    assert shown_settings(Settings(database_url=url))["DATABASE_URL"] == shown


class TestThePlant:
    LEVEL = {"name": "Nitrogen", "kind": "cryogen", "signal": "LN:LEVEL", "readings": [{"status": "Degraded", "below": 20}]}

    def test_nothing_is_monitored_by_default(self) -> None:
        settings = Settings()
        assert (settings.control_routes, settings.simulated_signals, settings.simulated_devices) == ((), {}, ())
        assert (settings.control_writes_enabled, settings.action_timeout_seconds) == (True, 3600)
        assert (settings.monitored_enclosures, settings.monitored_supplies) == ({}, ())

    def test_routes_signals_enclosures_and_supplies_are_read_from_json(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name, value in {
            "CONTROL_ROUTES": [{"prefix": "PSS:", "substrate": "in_memory", "simulated": True}],
            "SIMULATED_SIGNALS": {"PSS:B": 1, "PSS:C": "OFF", "PSS:D": True, "PSS:E": 0.5},
            "MONITORED_ENCLOSURES": {" Hutch B ": "PSS:B"},
            "MONITORED_SUPPLIES": [{**self.LEVEL, "signal": "PSS:LEVEL"}],
        }.items():
            monkeypatch.setenv(name, json.dumps(value))
        settings = Settings()
        (route,) = settings.control_routes
        assert (route.prefix, route.substrate, route.simulated, route.read_only) == ("PSS:", "in_memory", True, False)
        assert list(settings.simulated_signals.values()) == [1, "OFF", True, 0.5]
        assert [type(value) for value in settings.simulated_signals.values()] == [int, str, bool, float]
        assert settings.monitored_enclosures == {"Hutch B": "PSS:B"}
        (supply,) = settings.monitored_supplies
        assert (supply.facility_code, supply.containing_asset_id, supply.code) == (None, None, "cryogen/Nitrogen")
        assert boot_objections(settings) == []

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("CONTROL_ROUTES", [{"prefix": "PSS:", "substrate": "Carrier Pigeon"}]),
            ("CONTROL_ROUTES", [{"prefix": "PSS:"}]),
            ("MONITORED_ENCLOSURES", {" ": "PSS:B"}),
            ("MONITORED_ENCLOSURES", {"Hutch B": ""}),
            ("MONITORED_ENCLOSURES", {"Hutch B": "x" * 201}),
            ("MONITORED_SUPPLIES", [{**LEVEL, "readings": []}]),
            ("MONITORED_SUPPLIES", [{**LEVEL, "readings": [{"status": "Available", "above": 1}]}]),
            ("MONITORED_SUPPLIES", [{**LEVEL, "facility_code": "North Ring"}]),
            ("MONITORED_SUPPLIES", [{**LEVEL, "kind": "k" * 51}]),
            ("SIMULATED_SIGNALS", {"PSS:B": [1]}),
            ("SIMULATED_DEVICES", [{"kind": "robot", "address": "bl7:arm"}]),
            ("SIMULATED_DEVICES", [{"kind": "motor", "address": "bl7:x", "velocity": 0}]),
            ("SIMULATED_DEVICES", [{"kind": "motor", "address": "bl7:x", "speed": 1}]),
            ("SIMULATED_DEVICES", [{"kind": "motor"}]),
            ("SIMULATED_DEVICES", [{"kind": "signal", "address": "bl7:filter", "value": "In", "labels": ["Out"]}]),
            ("SIMULATED_DEVICES", [{"kind": "signal", "address": "bl7:filter", "value": "In", "noise": 0.1}]),
            ("SIMULATED_DEVICES", [{"kind": "detector", "address": "bl7:cam1", "noise": 0.1}]),
            ("SIMULATED_DEVICES", [{"kind": "peak", "address": "bl7:sharpness", "centres": {}}]),
        ],
    )
    def test_what_cannot_be_monitored_is_refused(self, name: str, value: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(name, json.dumps(value))
        with pytest.raises(ValidationError, match=name.lower()):
            Settings()

    def test_a_signal_without_a_route_is_objected_to(self) -> None:
        routes = [{"prefix": "PSS:", "substrate": "in_memory"}]
        found = objections(control_routes=routes, monitored_enclosures={"Hutch B": "INT:B"}, monitored_supplies=[self.LEVEL])
        assert found == [
            "MONITORED_ENCLOSURES names the signal INT:B, which no route leads to; add its prefix to CONTROL_ROUTES.",
            "MONITORED_SUPPLIES names the signal LN:LEVEL, which no route leads to; add its prefix to CONTROL_ROUTES.",
        ]

    def test_what_is_listed_twice_is_objected_to(self) -> None:
        route = {"prefix": "LN:", "substrate": "in_memory"}
        elsewhere = {**self.LEVEL, "containing_asset_id": str(MIRA)}
        found = objections(control_routes=[route, route], monitored_supplies=[self.LEVEL, elsewhere, self.LEVEL])
        assert found == [
            "CONTROL_ROUTES lists the prefix 'LN:' more than once; keep one route for each prefix.",
            "MONITORED_SUPPLIES lists cryogen/Nitrogen more than once; keep one signal for each supply.",
        ]

    def test_production_makes_no_signals_up(self) -> None:
        (found,) = objections(**SOUND, simulated_signals={"PSS:B": 1})
        assert found == "SIMULATED_SIGNALS makes up what the plant says, which APP_ENV=production does not accept; unset it."
        (found,) = objections(**SOUND, simulated_devices=[{"kind": "motor", "address": "bl7:x"}])
        assert found == "SIMULATED_DEVICES makes up what the plant says, which APP_ENV=production does not accept; unset it."

    def test_every_control_system_can_be_routed_to(self) -> None:
        routes = [{"prefix": name, "substrate": name} for name in ("in_memory", "epics_ca", "epics_pva", "ophyd", "tango")]
        assert [route.substrate for route in Settings(control_routes=routes).control_routes] == [*Substrate]

    def test_two_devices_at_one_address_are_objected_to(self) -> None:
        motor = {"kind": "motor", "address": "bl7:x"}
        (found,) = objections(simulated_devices=[motor, motor, {**motor, "address": "bl7:y"}])
        assert found == "SIMULATED_DEVICES lists bl7:x more than once; keep one device at each address."


class TestSafetyForms:
    def test_a_site_starts_with_the_common_ones(self) -> None:
        common = ("ESAF", "SAF", "AForm", "DUO", "ESRA", "ERA", "PLHD", "DOOR", "BTR", "Form9")
        assert Settings().clearance_template_codes == common

    def test_they_are_a_json_list(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for listed, codes in (("[]", ()), ('[" House form ", "ESAF"]', ("House form", "ESAF"))):
            monkeypatch.setenv("CLEARANCE_TEMPLATE_CODES", listed)
            assert Settings().clearance_template_codes == codes

    @pytest.mark.parametrize("code", [" ", "c" * 51])
    def test_a_code_has_1_to_50_characters(self, code: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("CLEARANCE_TEMPLATE_CODES", json.dumps([code]))
        with pytest.raises(ValidationError, match="clearance_template_codes"):
            Settings()


class TestIdleAgents:
    def test_rules_need_no_credentials(self) -> None:
        assert idle_agents(Settings(app_env="test")) == []

    def test_a_model_that_nobody_can_ask_is_named_with_what_mends_it(self) -> None:
        settings = Settings(app_env="test", run_debriefer_model="anthropic/haiku", caution_drafter_model="openai/gpt")
        first, second = idle_agents(settings)
        assert first.endswith("set ANTHROPIC_API_KEY.")
        assert second.startswith("CautionDrafter is on and does nothing: CAUTION_DRAFTER_MODEL is openai/gpt")

    def test_credentials_or_a_server_of_ones_own_or_the_switch_settle_it(self) -> None:
        models = {"run_debriefer_model": "anthropic/haiku", "caution_drafter_model": "openai/gpt"}
        reached = Settings(app_env="test", anthropic_api_key="k", openai_base_url="http://localhost:8001/v1", **models)
        off = Settings(app_env="test", run_debriefer_enabled=False, caution_drafter_enabled=False, **models)
        assert idle_agents(reached) == idle_agents(off) == []


@for_each(
    ("address", "tls", "refused"),
    [
        ("temporal.example:7233", False, True),
        ("10.0.0.7:7233", False, True),
        ("temporal.example:7233", True, False),
        ("127.0.0.1:7233", False, False),
        ("localhost:7233", False, False),
        ("[::1]:7233", False, False),
    ],
)
def test_production_reaches_temporal_over_tls_or_on_this_machine(address: str, tls: bool, refused: bool) -> None:
    found = boot_objections(Settings(app_env="production", temporal_address=address, temporal_tls=tls))
    assert any("TEMPORAL_TLS=true" in objection for objection in found) is refused
    assert not boot_objections(Settings(temporal_address=address))


def test_what_counts_over_tls_only_is_refused_without_it(tmp_path: Path) -> None:
    pem = tmp_path / "cert.pem"
    pem.write_text("-")
    found = boot_objections(Settings(temporal_api_key="secret", temporal_tls_cert=pem, temporal_tls_ca=tmp_path / "absent"))
    assert [objection.split()[0] for objection in found] == [
        "TEMPORAL_TLS_CERT",
        "TEMPORAL_TLS_CA",
        "TEMPORAL_TLS_CA",
        "TEMPORAL_TLS_CERT",
        "TEMPORAL_API_KEY",
    ]
    assert shown_settings(Settings(temporal_api_key="secret"))["TEMPORAL_API_KEY"] == "***"
