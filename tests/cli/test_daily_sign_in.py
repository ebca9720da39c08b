"""Signing in with a device code against a provider on loopback, profiles, and who one is to the service."""

import asyncio
import json
import re
import stat
import tomllib
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any
from uuid import uuid4

import pytest

from baton.cli.daily import device_login
from baton.cli.daily.device_login import DeviceCode, SignInClient, SignInPlace
from baton.cli.embedded.postgres import EmbeddedPostgres
from tests.support.databases import fresh_database
from tests.support.forked_commands import forked_command
from tests.support.infrastructure.device_issuer import PUBLIC_CLIENT, DeviceIssuer
from tests.support.infrastructure.identity_provider import HTTP_AUDIENCE
from tests.support.service import running_api
from tests.support.stack import clean_environment, run_baton
from tests.support.waiting import until

MIRA = uuid4()


@dataclass(frozen=True)
class SignInService:
    """A service that asks for tokens, and the provider that gives them."""

    url: str
    issuer: DeviceIssuer


@pytest.fixture(scope="module")
def device_issuer() -> Iterator[DeviceIssuer]:
    with DeviceIssuer.running_server() as issuer:
        assert isinstance(issuer, DeviceIssuer)
        yield issuer


@pytest.fixture(scope="module")
async def guarded_service(
    postgres: EmbeddedPostgres, template: str, device_issuer: DeviceIssuer
) -> AsyncIterator[SignInService]:
    binding = {"subject": "mira-77", "actor_id": str(MIRA)}
    provider = device_issuer.provider(public_client_id=PUBLIC_CLIENT, subject_bindings=[binding])
    with fresh_database(postgres, template) as url:
        async with running_api(url, identity_providers=[provider]) as api:
            yield SignInService(api.base_url, device_issuer)


@pytest.fixture
def sign_in_service(guarded_service: SignInService) -> SignInService:
    guarded_service.issuer.forget_sign_ins()
    return guarded_service


@pytest.fixture
def baton(tmp_path: Path) -> Callable[..., Any]:
    """Run a command with profiles of its own."""

    async def run(*arguments: str, **environment: str) -> "CompletedProcess[str]":
        return await asyncio.to_thread(run_baton, *arguments, XDG_CONFIG_HOME=str(tmp_path), **environment)

    return run


async def sign_in(service: SignInService, config: Path, *options: str, subject: str = "mira-77") -> str:
    """Sign in as a person who confirms the code, and return what the command printed."""
    said, errors = config / "said.txt", config / "errors.txt"
    arguments = ("login", "--url", service.url, *options)
    with forked_command(arguments, clean_environment(XDG_CONFIG_HOME=str(config)), said, errors) as process:
        [code] = await until(lambda: errors.exists() and re.findall(r"and enter (\w+)", errors.read_text()))
        service.issuer.confirm(code, subject)
        await asyncio.to_thread(process.join, 60)
        assert process.exitcode == 0, errors.read_text()
    return said.read_text()


def stored_profiles(config: Path) -> dict[str, Any]:
    return tomllib.loads((config / "baton" / "profiles.toml").read_text())


async def test_a_person_signs_in_with_a_code_and_is_known_from_then_on(
    sign_in_service: SignInService, tmp_path: Path, baton: Callable[..., Any]
) -> None:
    refused = await baton("whoami", "--url", sign_in_service.url)
    assert refused.returncode == 1
    assert refused.stderr.endswith("Sign in with `baton login`, or put a bearer token into BATON_TOKEN.\n")

    assert str(MIRA) in await sign_in(sign_in_service, tmp_path)
    file = tmp_path / "baton" / "profiles.toml"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    asked = sign_in_service.issuer.grants.requests[0]
    assert (asked["client_id"], asked["resource"]) == (PUBLIC_CLIENT, HTTP_AUDIENCE)
    known = await baton("whoami", "--json")
    answer = json.loads(known.stdout)
    assert (answer["principal_id"], answer["profile"], answer["url"]) == (str(MIRA), "default", sign_in_service.url)

    token = stored_profiles(tmp_path)["profiles"]["default"]["token"]
    assert token not in (await baton("profile", "ls")).stdout + known.stdout
    elsewhere = await baton("whoami", "--profile", "default", "--url", sign_in_service.url.replace("127.0.0.1", "localhost"))
    assert elsewhere.returncode == 1, "the token of a profile goes to its own address only"

    out = await baton("logout")
    assert (out.returncode, out.stdout) == (0, f"Signed out of {sign_in_service.url} (default).\n")
    assert stored_profiles(tmp_path)["profiles"]["default"] == {"url": sign_in_service.url}
    assert (await baton("whoami")).returncode == 1


async def test_a_token_that_ends_is_renewed(
    sign_in_service: SignInService, tmp_path: Path, baton: Callable[..., Any]
) -> None:
    sign_in_service.issuer.token_seconds = 1
    await sign_in(sign_in_service, tmp_path, "--profile", "bl7")
    before = stored_profiles(tmp_path)["profiles"]["bl7"]
    sign_in_service.issuer.token_seconds = 300
    assert (await baton("whoami")).returncode == 0
    after = stored_profiles(tmp_path)["profiles"]["bl7"]
    assert before["token"] != after["token"]
    assert before["refresh_token"] != after["refresh_token"]
    assert (await baton("whoami")).returncode == 0
    assert stored_profiles(tmp_path)["profiles"]["bl7"] == after
    other = await baton("login", "--profile", "bl7", "--url", "http://127.0.0.1:1")
    assert (other.returncode, other.stderr.startswith("baton: The profile bl7 is for ")) == (2, True)


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        ("access_denied", "The sign-in was declined."),
        ("expired_token", "Nobody confirmed the code in time; sign in again."),
        ("server_error", "{issuer} gave no token: server_error."),
    ],
)
async def test_a_sign_in_that_comes_to_nothing_says_why(
    sign_in_service: SignInService, tmp_path: Path, baton: Callable[..., Any], fault: str, sentence: str
) -> None:
    sign_in_service.issuer.first_faults = ["authorization_pending", fault]
    done = await baton("login", "--url", sign_in_service.url)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines()[-1] == f"baton: {sentence.format(issuer=sign_in_service.issuer.url)}"
    assert not (tmp_path / "baton").exists()


async def test_a_provider_that_cannot_is_said(sign_in_service: SignInService, baton: Callable[..., Any]) -> None:
    async def refusal(*options: str) -> str:
        done = await baton("login", "--url", sign_in_service.url, *options)
        assert (done.returncode, done.stdout) == ((1 if "--client-id" in options else 2), "")
        return str(done.stderr.removeprefix("baton: ").strip())

    assert (await refusal("--issuer", "https://id.example.org")).startswith("The service does not trust")
    assert (await refusal("--client-id", "nobody")).endswith("gave no code to sign in with: Nobody knows this client.")
    sign_in_service.issuer.metadata_changes = {"device_authorization_endpoint": None}
    assert "offers no sign-in with a device code" in await refusal()
    sign_in_service.issuer.metadata_changes = {"issuer": "https://other.example.org"}
    assert "does not publish where it signs people in" in await refusal()
    sign_in_service.issuer.metadata_changes = {"token_endpoint": "http://id.example.org/token"}
    sign_in_service.issuer.first_faults = []
    assert (await refusal()).splitlines()[-1].startswith("baton: http://id.example.org/token is not encrypted")


async def test_a_service_without_a_provider_needs_no_sign_in(
    database_url: str, baton: Callable[..., Any], tmp_path: Path
) -> None:
    async with running_api(database_url) as api:
        done = await baton("login", "--url", api.base_url)
    assert (done.returncode, done.stderr.startswith("baton: The service has no identity provider")) == (2, True)


def test_a_provider_that_is_asked_too_often_is_asked_less_often(device_issuer: DeviceIssuer) -> None:
    device_issuer.forget_sign_ins()
    device_issuer.first_faults = ["authorization_pending", "slow_down", "slow_down"]
    place = SignInPlace(device_issuer.url, f"{device_issuer.url}/device", f"{device_issuer.url}/token", PUBLIC_CLIENT, None)
    pauses: list[float] = []
    with SignInClient() as provider:
        code: DeviceCode = device_login.request_code(provider, place, None)
        device_issuer.confirm(code.user_code, "mira-77")
        assert device_login.await_token(provider, place, code, pauses.append)["token_type"] == "Bearer"
    assert pauses == [0, 0, 5, 10]


@pytest.mark.server
async def test_profiles_are_added_used_listed_and_removed(baton: Callable[..., Any], tmp_path: Path) -> None:
    assert (await baton("profile", "ls")).stdout == "There are no profiles; add one with `baton profile add NAME URL`.\n"
    for name in ("bl7", "test"):
        assert (await baton("profile", "add", name, f"https://{name}.example.org")).returncode == 0
    listed = json.loads((await baton("profile", "ls", "--json")).stdout)
    assert [(one["name"], one["current"], one["signed_in"]) for one in listed] == [
        ("bl7", True, False),
        ("test", False, False),
    ]
    used = await baton("profile", "use", "test")
    assert used.stdout == "Commands go to https://test.example.org (test) now.\n"
    assert (await baton("profile", "add", "test", "https://x.example.org")).returncode == 2
    assert (await baton("profile", "add", "a b", "https://x.example.org")).returncode == 2
    assert (await baton("profile", "add", "c", "nonsense")).returncode == 2
    missing = await baton("ps", BATON_PROFILE="other")
    assert (missing.returncode, missing.stderr.startswith("baton: There is no profile other; there are bl7, test.")) == (
        2,
        True,
    )
    assert (await baton("profile", "rm", "test")).returncode == 0
    assert stored_profiles(tmp_path) == {"profiles": {"bl7": {"url": "https://bl7.example.org"}}}
    (tmp_path / "baton" / "profiles.toml").write_text("current = [")
    broken = await baton("ps")
    assert (broken.returncode, "cannot be used" in broken.stderr) == (2, True)
