"""The `luftpause` command: a table of its subcommands, each imported only when it runs.

So `luftpause --help` and completion stay fast, whatever the services need. What a subcommand does stands in its module.
"""

import difflib
import importlib
from collections.abc import Mapping

import click
from click.shell_completion import CompletionItem

import luftpause
from luftpause.cli.compiled import is_compiled
from luftpause.cli.failures import failure_of

COMMANDS: Mapping[str, str] = {
    "up": "Start everything in one process.",
    "dataplane": "Start the LLM door.",
    "scheduler": "Start the scheduler.",
    "runtime": "Start the MCP door.",
    "launcher": "Start the launcher.",
    "status": "Show models, replicas, held turns and runs.",
    "doctor": "Look for what is wrong, and say what mends it.",
    "models": "List, load and unload models.",
    "config": "Check and explain the configuration.",
    "connect": "Point a client at the doors.",
    "fake-engine": "Start an engine that only pretends, for tests.",
    "fake-mcp": "Start MCP tools that only pretend, for tests.",
    "bench": "Measure policies and routers on workloads.",
    "sim": "Simulate scheduling on made-up engines.",
    "replay": "Decide again what an event log says.",
    "trace": "Export what runs did as a trace.",
    "loadgen": "Send made-up work through the doors and measure.",
    "completion": "Print the completion script for a shell.",
}
"""Each subcommand and its line in the help; its module is `luftpause.cli.<name>` and exposes `command`."""


INTERRUPTED = 130
"""Exit code after a Ctrl-C that came before a command could heed it, by the custom of shells."""


class LazyGroup(click.Group):
    """A group that knows its subcommands by name and imports them when they are needed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names, in the order of the help."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a subcommand; None when there is no such name."""
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"luftpause.cli.{cmd_name.replace('-', '_')}")
        command = module.command
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the subcommand that the arguments name; a mistyped one is told what it probably meant."""
        name = args[0]
        if name not in COMMANDS and not ctx.resilient_parsing:
            close = difflib.get_close_matches(name, COMMANDS, n=1)
            hint = f"Did you mean {close[0]!r}?" if close else f"There are: {', '.join(COMMANDS)}."
            ctx.fail(f"No such command {name!r}. {hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the help from the table alone."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete from the table alone."""
        named = [CompletionItem(name, help=said) for name, said in COMMANDS.items() if name.startswith(incomplete)]
        options = click.Command.shell_complete(self, ctx, incomplete) if incomplete.startswith("-") else []
        return [*named, *options]

    def invoke(self, ctx: click.Context) -> object:
        """Run the subcommand; what a person can mend becomes one line and an exit code."""
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError):
            raise  # click ends a command quietly whose reader has left
        except KeyboardInterrupt:
            raise click.exceptions.Exit(INTERRUPTED) from None
        except Exception as error:
            failure = failure_of(error)
            if failure is None:
                raise
            failure.show()
            raise click.exceptions.Exit(failure.exit_code) from None


def _version() -> str:
    """Return the version, and whether its hot path is compiled."""
    return luftpause.__version__ + "+compiled" * is_compiled()


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(_version(), message="%(prog)s %(version)s")
def main() -> None:
    """Keep the run of an agent across its tool calls.

    Stands between agent harnesses and inference engines: it knows which engine holds a run's prefix, when its turns
    are served, and which engines exist. Start with `luftpause up`.
    """
