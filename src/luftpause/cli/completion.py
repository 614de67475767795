"""`luftpause completion`: the script that teaches a shell our commands and options."""

import click
from click.shell_completion import get_completion_class

from luftpause.cli.examples import examples


@click.command(
    epilog=examples(
        ('eval "$(luftpause completion bash)"', "in ~/.bashrc"),
        ('eval "$(luftpause completion zsh)"', "in ~/.zshrc"),
    ),
    short_help="Print the completion script for a shell.",
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print the completion script for a shell, to be evaluated in its start-up file."""
    completion = get_completion_class(shell)
    assert completion is not None
    click.echo(completion(ctx.find_root().command, {}, "luftpause", "_LUFTPAUSE_COMPLETE").source())
