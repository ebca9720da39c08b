"""Signing in with a device code (RFC 8628): the person confirms in any browser, this command waits for the token. Where to
sign in is what the service's metadata of a protected resource (RFC 9728) and the provider's own (RFC 8414) say."""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

import httpx

from baton.cli.daily.profiles import Profile, read_profiles, write_profiles
from baton.cli.messages import REFUSED, refuse

RESOURCE_METADATA = "/.well-known/oauth-protected-resource"
DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"
TIMEOUT_SECONDS = 10.0
SLOWER_SECONDS = 5.0  # by which the pauses grow when the provider asks for it
DEFAULT_INTERVAL_SECONDS = 5.0
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
HTTP_SURFACE = "HTTP"


@dataclass(frozen=True)
class SignInPlace:
    """Where one signs in to a service: its provider's endpoints, for which audience, and as which client."""

    issuer: str
    device_url: str
    token_url: str
    client_id: str
    audience: str | None


@dataclass(frozen=True)
class DeviceCode:
    """What a person confirms, and what this command asks with meanwhile."""

    device_code: str
    user_code: str
    verification_url: str
    direct_url: str | None
    interval: float
    expires_in: float


class SignInClient:
    """Requests to a service and its identity provider, none of which may leave this machine unencrypted."""

    def __init__(self, transport: httpx.BaseTransport | None = None) -> None:
        self._http = httpx.Client(timeout=TIMEOUT_SECONDS, transport=transport, headers={"Accept": "application/json"})

    def __enter__(self) -> "SignInClient":
        return self

    def __exit__(self, *error: object) -> None:
        self._http.close()

    def find(self, url: str) -> dict[str, Any] | None:
        """Return the JSON object at an address; None where there is none."""
        return json_object(self._send("GET", url))

    def ask(self, url: str, form: Mapping[str, str | None]) -> tuple[bool, dict[str, Any]]:
        """Post a form; return whether it succeeded, and the answer."""
        answer = self._send("POST", url, data={name: value for name, value in form.items() if value is not None})
        found = json_object(answer, whatever_status=True)
        if found is None:
            refuse(f"{url} answered {answer.status_code} without JSON; is it an identity provider?")
        return answer.is_success, found

    def _send(self, method: str, url: str, **options: Any) -> httpx.Response:
        require_private(url)
        try:
            return self._http.request(method, url, **options)
        except (httpx.TransportError, httpx.InvalidURL) as error:
            refuse(f"Nothing answers at {url} ({error}); is the address right?")


def json_object(answer: httpx.Response, *, whatever_status: bool = False) -> dict[str, object] | None:
    """Return the JSON object in an answer; None where there is none."""
    if not answer.is_success and not whatever_status:
        return None
    try:
        found = answer.json()
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def require_private(url: str) -> None:
    """Exit where what is sent to an address could be read on its way."""
    place = urlsplit(url)
    if place.scheme != "https" and not (place.scheme == "http" and place.hostname in LOOPBACK):
        refuse(f"{url} is not encrypted; a sign-in goes over https only, or stays on this machine.")


def find_place(provider: SignInClient, service_url: str, issuer: str | None, client_id: str | None) -> SignInPlace:
    """Return where one signs in to a service, or exit with what is missing."""
    resource = provider.find(f"{service_url.rstrip('/')}{RESOURCE_METADATA}")
    if resource is None:
        refuse(f"{service_url} does not say where to sign in; is it the address of the service?")
    issuers = [str(one) for one in resource.get("authorization_servers", [])]
    if not issuers:
        refuse("The service has no identity provider; where it asks for no token, nobody needs to sign in.")
    if issuer is None and len(issuers) > 1:
        refuse(f"The service trusts several identity providers; name one with --issuer: {', '.join(sorted(issuers))}.")
    chosen = issuer or issuers[0]
    if chosen not in issuers:
        refuse(f"The service does not trust {chosen}; it trusts {', '.join(sorted(issuers))}.")
    client = client_id or resource.get("public_client_ids", {}).get(chosen)
    if client is None:
        refuse("The service does not say as which client to sign in; give --client-id, or have public_client_id set there.")
    found = next((one for url in metadata_urls(chosen) if (one := provider.find(url)) and one.get("issuer") == chosen), None)
    if found is None:
        refuse(f"{chosen} does not publish where it signs people in; put a bearer token into BATON_TOKEN instead.")
    if not found.get("device_authorization_endpoint") or not found.get("token_endpoint"):
        refuse(f"{chosen} offers no sign-in with a device code; put a bearer token into BATON_TOKEN instead.")
    audience = resource.get("surface_audiences", {}).get(HTTP_SURFACE)
    return SignInPlace(
        issuer=chosen,
        device_url=found["device_authorization_endpoint"],
        token_url=found["token_endpoint"],
        client_id=client,
        audience=audience[0] if isinstance(audience, list) else audience,
    )


def metadata_urls(issuer: str) -> Iterator[str]:
    """Yield where a provider may publish its metadata: by RFC 8414 before the path, by OpenID behind it."""
    place = urlsplit(issuer)
    path = place.path.rstrip("/")
    yield f"{place.scheme}://{place.netloc}/.well-known/oauth-authorization-server{path}"
    yield f"{issuer.rstrip('/')}/.well-known/openid-configuration"


def request_code(provider: SignInClient, place: SignInPlace, scope: str | None) -> DeviceCode:
    """Return a code for a person to confirm, or exit with what the provider says."""
    form = {"client_id": place.client_id, "scope": scope, "resource": place.audience, "audience": place.audience}
    succeeded, found = provider.ask(place.device_url, form)
    if not succeeded or not {"device_code", "user_code", "verification_uri"} <= found.keys():
        refuse(f"{place.issuer} gave no code to sign in with: {fault_of(found)}", code=REFUSED)
    return DeviceCode(
        device_code=found["device_code"],
        user_code=found["user_code"],
        verification_url=found["verification_uri"],
        direct_url=found.get("verification_uri_complete"),
        interval=float(found.get("interval", DEFAULT_INTERVAL_SECONDS)),
        expires_in=float(found.get("expires_in", 600)),
    )


def await_token(
    provider: SignInClient, place: SignInPlace, code: DeviceCode, pause: Callable[[float], None] = time.sleep
) -> dict[str, object]:
    """Ask until the person has confirmed the code, as slowly as the provider wants; exit where they did not."""
    deadline, interval = time.monotonic() + code.expires_in, code.interval
    form = {"grant_type": DEVICE_GRANT, "device_code": code.device_code, "client_id": place.client_id}
    while time.monotonic() < deadline:
        pause(interval)
        succeeded, found = provider.ask(place.token_url, {**form, "resource": place.audience})
        if succeeded and isinstance(found.get("access_token"), str):
            return found
        match found.get("error"):
            case "authorization_pending":
                pass
            case "slow_down":
                interval += SLOWER_SECONDS
            case "access_denied":
                refuse("The sign-in was declined.", code=REFUSED)
            case "expired_token":
                break
            case _:
                refuse(f"{place.issuer} gave no token: {fault_of(found)}", code=REFUSED)
    refuse("Nobody confirmed the code in time; sign in again.", code=REFUSED)


def fault_of(answer: Mapping[str, object]) -> str:
    """Return what a provider says is wrong."""
    said = answer.get("error_description") or answer.get("error") or "it does not say why"
    return f"{str(said).removesuffix('.')}."


def profile_with(answer: Mapping[str, Any], profile: Profile) -> Profile:
    """Return a profile with the token of an answer; the old refresh token stays where no new one came."""
    lasts = answer.get("expires_in")
    return replace(
        profile,
        token=str(answer["access_token"]),
        refresh_token=answer.get("refresh_token") or profile.refresh_token,
        expires_at=None if lasts is None else time.time() + float(lasts),
    )


def renew_token(name: str, profile: Profile) -> Profile:
    """Return a profile with a fresh token, and store it; where the provider gives none, the profile as it was."""
    if profile.token_url is None or profile.client_id is None:
        return profile
    form = {"grant_type": "refresh_token", "refresh_token": profile.refresh_token, "client_id": profile.client_id}
    with SignInClient() as provider:
        succeeded, found = provider.ask(profile.token_url, form)
    if not succeeded or not isinstance(found.get("access_token"), str):
        return profile
    renewed = profile_with(found, profile)
    write_profiles(read_profiles().with_entry(name, renewed))
    return renewed
