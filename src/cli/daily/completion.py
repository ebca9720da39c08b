"""Shell completion: names of things come from the service, within a second, and without loading the domain."""

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlencode

from typer import Argument, Context, Typer

from baton.cli.daily.profiles import read_profiles
from baton.cli.daily.session import DAILY_WORK, DEFAULT_URL
from baton.cli.messages import refuse
from baton.cli.stack_note import is_own_stack, stack_address

app = Typer()
VARIABLE = "_BATON_COMPLETE"
WAIT_SECONDS = 1.0
SHOWN_NAMES = 30
GIVEN = ("url", "token", "profile")
SHELLS = ("bash", "zsh", "fish")
SAFE_NAME = re.compile(r"[\w .,/+@%=#-]+")  # names with other characters are not offered: a shell would read them otherwise
Completer = Callable[[Context, str], list[str]]


@app.command(rich_help_panel=DAILY_WORK)
def completion(shell: Annotated[str, Argument(help="bash, zsh or fish.")]) -> None:
    """Print the completion of a shell; `eval "$(baton completion bash)"` switches it on."""
    from typer._completion_shared import get_completion_script

    if shell not in SHELLS:
        refuse(f"There is no completion for {shell}; there is one for {', '.join(SHELLS)}.")
    print(get_completion_script(prog_name="baton", complete_var=VARIABLE, shell=shell))


def complete_names(*paths: str) -> Completer:
    """Return a function that completes the names of the things that the service lists under these paths."""

    def complete(context: Context, incomplete: str) -> list[str]:
        found = {name for path in paths for name in listed_names(context.params, path, incomplete)}
        return [written_name(name) for name in sorted(found) if name.startswith(incomplete) and SAFE_NAME.fullmatch(name)]

    return complete


def listed_names(options: dict[str, object], path: str, part: str) -> list[str]:
    """Return the names in a list of the service that have this part; none where it does not answer in time."""
    import urllib.request

    url, token = completion_target(options)
    query = urlencode({"limit": SHOWN_NAMES, "order": "desc", **({"q": part[:100]} if part.strip() else {})})
    request = urllib.request.Request(f"{url.rstrip('/')}{path}?{query}")
    if not request.full_url.startswith(("http://", "https://")):
        return []
    if token:
        request.add_header("Authorization", f"Bearer {token}")
    try:
        with urllib.request.urlopen(request, timeout=WAIT_SECONDS) as answer:
            items = json.load(answer)["items"]
    except (OSError, ValueError, KeyError, TypeError):
        return []
    return [item["name"] for item in items if isinstance(item.get("name"), str)]


def completion_target(options: dict[str, Any]) -> tuple[str, str | None]:
    """Return the address and the token by the options given so far; no token is renewed for a completion."""
    url, token, profile = (options.get(name) or os.environ.get(f"BATON_{name.upper()}") for name in GIVEN)
    if url is not None and profile is None:
        return url, token
    profiles = read_profiles()
    found = profiles.entries.get(profile or profiles.current or "")
    if found is None:
        if url is not None:
            return url, token
        directory = options.get("data_dir") or Path(".baton")
        address = stack_address(directory, "url") or DEFAULT_URL
        return address, token if is_own_stack(directory, address) else None
    return url or found.url, token or (found.token if url in (None, found.url) else None)


def written_name(name: str) -> str:
    """Return a name as the shell that asks wants it written: bash takes spaces for ends of words."""
    return name.replace(" ", "\\ ") if os.environ.get(VARIABLE) == "complete_bash" else name


def operation_names() -> list[str]:
    """Return the name of every operation."""
    from baton.client.index import OPERATIONS

    return list(OPERATIONS)


def refusal_names() -> list[str]:
    """Return the code of every refusal that can be answered."""
    from baton.client.index import REFUSALS

    return list(REFUSALS)


def complete_operation(incomplete: str) -> list[str]:
    """Complete the name of an operation."""
    return [name for name in operation_names() if name.startswith(incomplete)]


def complete_source(incomplete: str) -> list[str]:
    """Complete the name of an operation or a refusal."""
    return [name for name in (*operation_names(), *refusal_names()) if name.startswith(incomplete)]


def complete_profile(incomplete: str) -> list[str]:
    """Complete the name of a profile."""
    return [name for name in read_profiles().entries if name.startswith(incomplete)]


complete_work = complete_names("/runs", "/procedures")
complete_plan = complete_names("/plans")
complete_queue = complete_names("/queues")
complete_recipe = complete_names("/recipes")
complete_asset = complete_names("/assets")
complete_subject = complete_names("/subjects")
