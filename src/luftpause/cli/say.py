"""Lines for whoever watches a service. That nobody does any more, as behind `| head -1`, is no reason to end it."""

import os
import sys

import click


def say(line: str, *, err: bool = False) -> None:
    """Print a line to standard output or error; from the first one on that nobody can read, print to nowhere."""
    try:
        click.echo(line, err=err)
    except BrokenPipeError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, (sys.stderr if err else sys.stdout).fileno())
        os.close(nowhere)
