"""Which test runs against which part, over which transport, in which era."""

from __future__ import annotations

from . import cases_asks as asks, cases_cli as cli, cases_guests as guests
from . import cases_life as life, cases_through as through
from .case import HTTP, STDIO, Case
from .parts import LEGACY, MODERN

ERAS = (LEGACY, MODERN, "auto")
EVERY_PART = ("everything", "everything-http", "filesystem", "time", "git")
# The servers that have a slow tool with progress.
WITH_PROGRESS = ("everything", "everything-http")


def cases() -> list[Case]:
    """All tests, grouped by part so that direct results are asked for once."""
    found: list[Case] = []
    for part in EVERY_PART:
        found += through_cases(part)
        found += [case(part, "stdio", "-", life.probed_era)]
    for part in WITH_PROGRESS + ("filesystem",):
        found += [case(part, "stdio", "-", life.wrong_era_is_refused)]
    found += [case("everything", transport, era, asks.the_person_at_the_client_answers)
              for transport in (STDIO, HTTP) for era in (LEGACY, MODERN)]
    return found + life_cases() + cli_cases() + guest_cases()


def through_cases(part: str) -> list[Case]:
    """Equality with a direct connection: both transports, all ways to choose an era."""
    tests = [through.listing, through.calls, through.parallel]
    found = [case(part, transport, era, test) for transport in (STDIO, HTTP) for era in ERAS for test in tests]
    found += [case(part, STDIO, LEGACY, through.order_of_the_listing)]
    if part in WITH_PROGRESS:
        more = [through.progress, through.cancel, through.slow_does_not_hold_up]
        found += [case(part, transport, era, test)
                  for transport in (STDIO, HTTP) for era in (LEGACY, MODERN) for test in more]
    return found


def life_cases() -> list[Case]:
    """Start, failure and end."""
    found = [case(part, STDIO, LEGACY, life.closing_input_ends_it)
             for part in ("everything", "filesystem", "time", "git")]
    found += [case("everything", HTTP, LEGACY, test)
              for test in (life.kill_nine_leaves_no_orphan, life.kill_nine_under_npx_leaves_no_orphan)]
    found += [case("everything", transport, era, life.a_server_that_dies_is_started_again)
              for transport, era in ((STDIO, LEGACY), (HTTP, MODERN))]
    found += [case("everything", HTTP, "both", life.both_eras_at_once)]
    found += [case("everything", HTTP, "-", life.a_token_is_needed)]
    found += [case("everything", STDIO, MODERN, life.secrets_stay)]
    found += [case("everything", STDIO, LEGACY, through.writing_systems)]
    found += [case("everything", STDIO, LEGACY, life.long_names_are_shortened)]
    found += [case("everything", transport, era, life.several_servers_at_once)
              for transport, era in ((STDIO, LEGACY), (HTTP, MODERN))]
    found += [case("everything-http", transport, LEGACY, life.sessions_upstream_are_ended)
              for transport in (STDIO, HTTP)]
    return found + [case("everything-http", "cli", "-", life.a_server_that_comes_later)]


def cli_cases() -> list[Case]:
    """The command line against the everything server."""
    tests = [
        cli.add_then_ask_then_grant, cli.add_with_npx, cli.json_output_is_the_result,
        cli.add_says_what_is_pinned, cli.a_good_start_is_quiet,
    ]
    found = [case("everything", "cli", "-", test) for test in tests]
    return found + [case("everything", STDIO, era, cli.none_is_none) for era in (LEGACY, MODERN)]


def guest_cases() -> list[Case]:
    """Plugins in languages that bring a runtime of their own. Making and compiling one takes its time."""
    tests = {"everything": guests.a_javascript_policy_works_and_finds_nothing,
             "time": guests.a_python_policy_works_and_finds_nothing}
    return [Case(test.__name__, part, STDIO, LEGACY, test, guests.SECONDS) for part, test in tests.items()]


def case(part: str, transport: str, era: str, test) -> Case:  # noqa: ANN001  (see Case.run)
    """A test under the name of its function."""
    return Case(test.__name__, part, transport, era, test)
