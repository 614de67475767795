"""The `luftpause` command."""

import click


@click.group()
def main() -> None:
    """Keep the run of an agent across its tool calls."""
