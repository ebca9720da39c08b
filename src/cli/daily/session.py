"""What every command of a service has in common: how the service is found, who asks, how answers and refusals are shown."""

import gc
import inspect
import json
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

from typer import Option, Typer, confirm

from baton.cli.daily.profiles import Profile, read_profiles
from baton.cli.daily.tables import local_time, plain_line
from baton.cli.messages import REFUSED, refuse
from baton.cli.stack_note import is_own_stack, stack_address

if TYPE_CHECKING:
    from baton.client import Baton
    from baton.client.refusals import ProposedError, Refusal

DEFAULT_URL = "http://127.0.0.1:8000"
GIVE_UP_SECONDS = 5.0  # how long a service that is away is asked again
PANEL, DAILY_WORK = "Service", "Daily work"
Command = Callable[..., Any]
ServiceUrl = Annotated[
    str | None, Option("--url", envvar="BATON_URL", help="Address of the service.", rich_help_panel=PANEL)
]
ServiceToken = Annotated[
    str | None, Option("--token", envvar="BATON_TOKEN", help="Bearer token, where one is needed.", rich_help_panel=PANEL)
]
ServiceProfile = Annotated[
    str | None, Option("--profile", envvar="BATON_PROFILE", help="Profile of the service.", rich_help_panel=PANEL)
]
ServiceDirectory = Annotated[Path, Option("--data-dir", help="The data directory of `baton up`.", rich_help_panel=PANEL)]
AsJson = Annotated[bool, Option("--json", help="Print one JSON document and nothing else.", rich_help_panel=PANEL)]


@dataclass(frozen=True)
class ServiceSession:
    """The service that a command talks to, who asks, and how its answer is printed."""

    url: str
    token: str | None = None
    profile_name: str | None = None
    as_json: bool = False
    has_withheld_token: bool = False  # Whether there is one that is not sent, since nobody chose the address.

    @classmethod
    def open(
        cls,
        url: ServiceUrl = None,
        token: ServiceToken = None,
        profile: ServiceProfile = None,
        data_dir: ServiceDirectory = Path(".baton"),
        as_json: AsJson = False,
    ) -> "ServiceSession":
        """Return the session that the options name: an address, a profile, the profile in use, the stack of the data
        directory, or the service of this machine. The token of a profile goes to that profile's address only, and any token
        to an address alone that the person chose."""
        profiles = read_profiles()
        if url is not None and profile not in profiles.entries:  # `login` makes a profile that is not there yet
            return cls(url, token, profile, as_json)
        name = profile or profiles.current
        if name is None:
            address = stack_address(data_dir, "url") or DEFAULT_URL
            is_chosen = is_own_stack(data_dir, address)
            return cls(address, token if is_chosen else None, None, as_json, token is not None and not is_chosen)
        found = profiles.find_profile(name)
        address = url or found.url
        known = token or (profile_token(name, found) if address == found.url else None)
        return cls(address, known, name, as_json)

    @cached_property
    def client(self) -> "Baton":
        """The client of the service."""
        from baton.client import Baton

        gc.freeze()
        gc.enable()  # everything is loaded, and stays: see `main`
        return Baton(self.url, self.token or "", give_up_seconds=GIVE_UP_SECONDS)

    def show(self, document: Any, lines: Iterable[str]) -> None:
        """Print an answer: the whole of it as JSON, or what a person reads."""
        if self.as_json:
            print_json(document)
        else:
            for line in lines:
                print(plain_line(line))
        sys.stdout.flush()


def service_command(app: Typer, name: str | None = None, **options: Any) -> Callable[[Command], Command]:
    """Declare a command that talks to a service: its function takes the session first, the command the options of one."""

    def declare(function: Command) -> Command:
        common = inspect.signature(ServiceSession.open, eval_str=True).parameters
        own = list(inspect.signature(function, eval_str=True).parameters.values())[1:]

        def command(**given: Any) -> Any:
            wanted = {one: given.pop(one) for one in common}
            session = ServiceSession.open(**wanted)
            with reported_errors(session):
                return function(session, **given)

        by_name = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in (*own, *common.values())]
        command.__signature__ = inspect.Signature(by_name)  # type: ignore[attr-defined]
        command.__annotations__ = {one.name: one.annotation for one in by_name}
        command.__name__, command.__doc__ = function.__name__, function.__doc__
        app.command(name, **{"rich_help_panel": DAILY_WORK, **options})(command)
        return function

    return declare


@contextmanager
def reported_errors(session: ServiceSession) -> Iterator[None]:
    """Print what went wrong as a sentence, and exit: 1 where the service refused, 2 where nobody was asked or answered. A
    command that waits for the approval of a second person did not go wrong: it is said, and that is all."""
    from baton.client.refusals import ClientError, ProposedError, Refusal, ServiceUnreachableError

    try:
        yield
    except Refusal as refusal:
        refuse_as(session, refusal)
    except ProposedError as waiting:
        session.show(waiting.proposed, proposed_lines(waiting))
    except ServiceUnreachableError as error:
        refuse(f"{str(error).removesuffix('.')}; start it with `baton up`, or name its address with --url or --profile.")
    except ClientError as error:
        refuse(*error.sentences)


def proposed_lines(waiting: "ProposedError") -> Iterator[str]:
    """Yield that a command waits for approval, and how to ask what becomes of it."""
    name, proposed = waiting.operation.name, waiting.proposed
    until = f"{local_time(proposed.expires_at)}: {proposed.proposal_id}"
    yield f"{name} needs the approval of a second person, and is proposed until {until}"
    yield f"Ask what becomes of it with: baton call get_work work_id={proposed.work_id}"


def refuse_as(session: ServiceSession, refusal: "Refusal") -> NoReturn:
    """Exit with what the service said; as JSON the whole body of the refusal goes to standard output."""
    if session.as_json:
        print_json(refusal.problem or {"code": refusal.code, "detail": refusal.detail, "reason": refusal.reason})
    cause = f" [{refusal.reason}]" if refusal.reason else ""
    remedy = " Sign in with `baton login`, or put a bearer token into BATON_TOKEN." if refusal.status == 401 else ""
    if session.has_withheld_token:
        remedy = f" Your token was not sent to {session.url}, which nobody chose; name the address with --url or a profile."
    way = ["The way there:", *map(call_line, refusal.next_steps)] if refusal.next_steps else []
    refuse(f"{refusal.detail}{cause}{remedy}", *getattr(refusal, "__notes__", ()), *way, code=REFUSED)


def call_line(step: Mapping[str, Any]) -> str:
    """Return a call as it is typed; arguments that its caller must fill in are in capitals."""
    known = [f"{name}={value if isinstance(value, str) else json.dumps(value)}" for name, value in step["arguments"].items()]
    needed = [f"{name}={name.upper()}" for name in step["needed"]]
    return f"  baton call {step['operation']} {shlex.join((*known, *needed))}"


def require_consent(session: ServiceSession, question: str, digest: str, yes: bool) -> None:
    """Ask the person whether they want what was shown, unless they said so before; exit where they do not, or cannot say."""
    if yes:
        return
    if session.as_json or not sys.stdin.isatty():
        refuse(f"Nobody can be asked here; say what was looked at with --digest {digest}, or give --yes.")
    if not confirm(question):
        raise SystemExit(REFUSED)


def profile_token(name: str, profile: Profile) -> str | None:
    """Return the token of a profile, renewed where it is about to end and can be."""
    if profile.token is None or not profile.is_ending or profile.refresh_token is None:
        return profile.token
    from baton.cli.daily.device_login import renew_token

    return renew_token(name, profile).token


def print_json(document: object) -> None:
    """Print one JSON document."""
    from baton.client.answers import json_value
    from baton.client.wording import terminal_json

    print(terminal_json(json.dumps(json_value(document), indent=2, ensure_ascii=False)), flush=True)
