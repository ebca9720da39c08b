"""`login`, `logout`, `whoami` and `profile`: who asks, and where."""

import sys
from collections.abc import Iterator
from typing import Annotated, Any

from typer import Argument, Option, Typer

from baton.cli.daily.completion import complete_profile
from baton.cli.daily.profiles import FIRST_PROFILE, Profile, read_profiles, require_profile_name, write_profiles
from baton.cli.daily.session import DAILY_WORK, AsJson, ServiceSession, print_json, service_command
from baton.cli.daily.tables import plain_line, table_lines
from baton.cli.messages import refuse

app = Typer()
profile = Typer(no_args_is_help=True, help="The services you work with, by name.")
app.add_typer(profile, name="profile")
ProfileName = Annotated[str, Argument(help="Its name.", autocompletion=complete_profile)]


@service_command(app)
def login(
    session: ServiceSession,
    issuer: Annotated[str | None, Option(help="The identity provider, where the service trusts several.")] = None,
    client_id: Annotated[str | None, Option(envvar="BATON_CLIENT_ID", help="The client to sign in as.")] = None,
    scope: Annotated[str | None, Option(help="What is asked for, as the provider names it.")] = None,
) -> None:
    """Sign in with a code that you confirm in a browser; the token is kept in the profile."""
    from baton.cli.daily import device_login

    name = require_profile_name(session.profile_name or FIRST_PROFILE)
    known = read_profiles().entries.get(name)
    if known is not None and known.url != session.url:
        refuse(f"The profile {name} is for {known.url}; name another one with --profile.")
    with device_login.SignInClient() as provider:
        place = device_login.find_place(provider, session.url, issuer, client_id)
        code = device_login.request_code(provider, place, scope)
        print(f"Open {code.verification_url} and enter {code.user_code}", file=sys.stderr)
        if code.direct_url is not None:
            print(f"or open {code.direct_url} and confirm it.", file=sys.stderr)
        sys.stderr.flush()
        answer = device_login.await_token(provider, place, code)
    made = Profile(session.url, token_url=place.token_url, client_id=place.client_id)
    signed_in = device_login.profile_with(answer, made)
    write_profiles(read_profiles().with_entry(name, signed_in))
    show_caller(ServiceSession(signed_in.url, signed_in.token, name, session.as_json))


@app.command(rich_help_panel=DAILY_WORK)
def logout(
    name: Annotated[
        str | None, Option("--profile", envvar="BATON_PROFILE", help="The profile; else the one in use.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Forget the token of a profile; its address stays."""
    profiles = read_profiles()
    if (chosen := name or profiles.current) is None:
        refuse("There is no profile in use, so nobody is signed in.")
    found = profiles.find_profile(chosen)
    write_profiles(profiles.with_entry(chosen, found.signed_out))
    done = f"Signed out of {found.url} ({chosen})." if found.token else f"Nobody was signed in to {found.url} ({chosen})."
    say_done(chosen, found.url, done, as_json, was_signed_in=found.token is not None)


@service_command(app)
def whoami(session: ServiceSession) -> None:
    """Say who you are to the service."""
    show_caller(session)


def show_caller(session: ServiceSession) -> None:
    """Print who the caller is to the service."""
    access: Any = session.client.call("get_my_access")
    kind = "" if access.kind is None else f", {access.kind.replace('_', ' ')}"
    used = "" if session.profile_name is None else f" (profile {session.profile_name})"
    session.show(
        {"url": session.url, "profile": session.profile_name, **access.to_dict()},
        [
            f"{access.name or 'unnamed'}{kind}, {access.principal_id}",
            f"at {session.url}{used}; {len(access.permitted_commands)} operations are permitted",
            *([access.remark] if access.remark else []),
            *access_lines(access),
        ],
    )


def access_lines(access: Any) -> Iterator[str]:
    """Yield the groups of a caller, and the policies that permit it something."""
    groups = {group.group_id: group for group in access.groups or ()}
    for group in groups.values():
        yield f"  group   {group.name}, {'listed' if group.listed else 'by your token'}"
    for policy in access.policies or ():
        named = ", ".join(groups[id].name for id in sorted(policy.through_group_ids) if id in groups)
        through = f" through {named}" if named else ""
        approval = " with approval" if policy.with_approval else ""
        yield f"  policy  {policy.name}: {len(policy.commands or ())} operations{approval}{through}"


@profile.command("ls")
def list_profiles(as_json: AsJson = False) -> None:
    """List the profiles; the one in use has a star."""
    profiles = read_profiles()
    rows = [
        ("*" if name == profiles.current else "", name, one.url, "signed in" if one.token else "-")
        for name, one in sorted(profiles.entries.items())
    ]
    if as_json:
        known = [
            {"name": name, "url": url, "current": bool(used), "signed_in": token != "-"} for used, name, url, token in rows
        ]
        print_json(known)
        return
    otherwise = "There are no profiles; add one with `baton profile add NAME URL`."
    for line in table_lines(("", "NAME", "URL", "TOKEN"), [(used or " ", *rest) for used, *rest in rows], otherwise):
        print(plain_line(line))


@profile.command("add")
def add_profile(
    name: ProfileName, url: Annotated[str, Argument(help="Address of the service.")], as_json: AsJson = False
) -> None:
    """Add a service; the first one is used where none is named."""
    profiles = read_profiles()
    if require_profile_name(name) in profiles.entries:
        refuse(f"There is a profile {name} already, for {profiles.entries[name].url}; remove it first.")
    if not url.startswith(("http://", "https://")):
        refuse(f"{url} is no URL; give one like https://baton.example.org.")
    write_profiles(profiles.with_entry(name, Profile(url)))
    say_done(name, url, f"Added {name} for {url}.", as_json)


@profile.command("rm")
def remove_profile(name: ProfileName, as_json: AsJson = False) -> None:
    """Remove a service, and its token with it."""
    profiles = read_profiles()
    found = profiles.find_profile(name)
    write_profiles(profiles.without_entry(name))
    say_done(name, found.url, f"Removed {name} for {found.url}.", as_json)


@profile.command("use")
def use_profile(name: ProfileName, as_json: AsJson = False) -> None:
    """Use this service where none is named."""
    profiles = read_profiles()
    found = profiles.find_profile(name)
    write_profiles(profiles.with_current(name))
    say_done(name, found.url, f"Commands go to {found.url} ({name}) now.", as_json)


def say_done(name: str, url: str, sentence: str, as_json: bool, **more: object) -> None:
    """Print what was done with a profile."""
    if as_json:
        print_json({"profile": name, "url": url, **more})
    else:
        print(sentence)
