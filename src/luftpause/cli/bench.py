"""`luftpause bench`: workloads with what they must show, on our policies and on other people's routers."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import get_args

import click
import msgspec
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from luftpause.cli.failures import CommandFailedError
from luftpause.cli.options import FiniteRange
from luftpause.cli.say import say
from luftpause.cli.tables import print_table
from luftpause.testkit.bench.bench import Effort, jobs_of, measure_workload, simulate_workload
from luftpause.testkit.bench.jobs import Done, cores
from luftpause.testkit.bench.over_http.doors import HTTP_ARMS, AbsentError
from luftpause.testkit.bench.over_http.measure import Window
from luftpause.testkit.bench.plots import plot
from luftpause.testkit.bench.results import EngineShell, WorkloadResult, file_name, to_json
from luftpause.testkit.bench.revisions import RevisionError, checked_out, measured_at, with_arms
from luftpause.testkit.bench.samples import Sample
from luftpause.testkit.bench.simulated import Job
from luftpause.testkit.bench.tables import arms_table, verdicts_table
from luftpause.testkit.bench.workloads import WORKLOADS, Workload

_SEEDS_MAX = 1000
_ENGINES = get_args(EngineShell)


class _Options(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line said. `minutes` is None for each scenario's own."""

    workloads: tuple[str, ...]
    engine: EngineShell
    speed: float
    seed: int
    seeds: int
    arms: tuple[str, ...]
    minutes: float | None
    revisions: tuple[str, ...]
    jobs: int
    json_to: str | None
    results: str | None
    strict: bool


def _names(ctx: click.Context, parameter: click.Parameter, value: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name.strip() for name in value.split(",") if name.strip()))


@click.command(short_help="Measure policies and routers on workloads.")
@click.argument("workloads", nargs=-1, metavar="WORKLOAD...")
@click.option(
    "--engine", type=click.Choice(get_args(EngineShell)), default="sim", show_default=True, help="What answers."
)
@click.option("--speed", type=FiniteRange(0.1, 1000), default=4.0, show_default=True, help="Of time, over HTTP.")
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True, help="The first seed.")
@click.option("--seeds", type=click.IntRange(1, _SEEDS_MAX), default=5, show_default=True, help="So many in a row.")
@click.option("--arms", callback=_names, default="", metavar="A,B", help="Who schedules.  [default: all that can]")
@click.option("--minutes", type=FiniteRange(0.1, 10_000), help="Counted time.  [default: its own; 2 over HTTP]")
@click.option("--rev", "revisions", multiple=True, metavar="COMMIT", help="Measure that commit, too. Repeatable.")
@click.option("--jobs", type=click.IntRange(1, 1024), default=cores, show_default="all cores", help="Processes.")
@click.option("--json", "json_to", metavar="FILE", help="Write the result of one workload there; - prints it.")
@click.option("--results", metavar="FOLDER", help="Write a JSON file and a plot of each workload there.")
@click.option("--strict", is_flag=True, help="Exit with 1 when anything is not shown that must be.")
def command(**given: object) -> None:
    """Measure our policies against other people's routers, and say what is shown and what is not.

    WORKLOAD is one of those that are listed without any, or `all`. Every arm meets the same runs with the
    same tools, seed by seed; ratios are taken within a seed. `luftpause sim` simulates one scenario, also your own.
    """
    options = msgspec.convert(given, _Options)
    if not options.workloads:
        _list()
        return
    chosen = _chosen(options)
    if options.json_to is not None and len(chosen) > 1:
        raise click.UsageError("--json takes the result of one workload; --results FOLDER takes those of several")
    try:
        results = [_measured(workload, options) for workload in chosen]
    except (RevisionError, AbsentError) as error:
        raise CommandFailedError(str(error)) from error
    if options.json_to == "-":
        click.echo(to_json(results[0]).decode(), nl=False)
    elif options.json_to is not None:
        Path(options.json_to).write_bytes(to_json(results[0]))
    if options.results is not None:
        for result in results:
            _store(result, Path(options.results))
    if options.json_to != "-":
        _show_verdicts(results)
    is_shown = all(verdict.met for result in results for verdict in result.verdicts)
    is_broken = any(arm.broken for result in results for arm in result.arms)
    if is_broken or (options.strict and not is_shown):
        raise click.exceptions.Exit(1)


def _chosen(options: _Options) -> list[Workload]:
    asked = dict.fromkeys(name.lower() for name in options.workloads)
    names = WORKLOADS if "all" in asked else asked
    unknown = [name for name in names if name not in WORKLOADS]
    if unknown:
        raise click.BadParameter(f"no workload {', '.join(unknown)!r}; there are {', '.join(WORKLOADS)} and all")
    return [WORKLOADS[name] for name in names]


def _arms(workload: Workload, options: _Options) -> tuple[str, ...]:
    unknown = ", ".join(name for name in options.arms if name not in workload.arms)
    if unknown:
        raise click.BadParameter(f"no arm {unknown!r} in {workload.name}; there are {', '.join(workload.arms)}")
    return options.arms or workload.arms


def _measured(workload: Workload, options: _Options) -> WorkloadResult:
    arms = _arms(workload, options)
    if options.engine != "sim":
        arms = tuple(arm for arm in arms if arm in HTTP_ARMS)
    effort = Effort(
        seeds=tuple(range(options.seed, options.seed + options.seeds)), minutes=options.minutes, processes=options.jobs
    )
    with _progress(workload.name, len(jobs_of(workload, arms, effort))) as done:
        if options.engine == "sim":
            result = simulate_workload(workload, arms, effort, done)
        else:
            window = Window(minutes=options.minutes or 2.0, speed=options.speed, real=options.engine == "llama")
            result = measure_workload(workload, arms, effort, window, done)
    for revision in options.revisions:
        with checked_out(revision) as (name, folder):
            result = with_arms(result, measured_at(folder, name, workload, _same(options)), workload)
    if options.json_to != "-":
        _show(workload, result)
    return result


def _same(options: _Options) -> list[str]:
    """Return the options that another commit is to be measured with."""
    same = ["--engine", options.engine, "--speed", f"{options.speed:g}", "--jobs", str(options.jobs)]
    same += ["--seed", str(options.seed), "--seeds", str(options.seeds)]
    return same if options.minutes is None else [*same, "--minutes", f"{options.minutes:g}"]


@contextmanager
def _progress(name: str, count: int) -> Iterator[Done]:
    """Show how far it is: a bar on a terminal, else one line when it is over."""
    if not sys.stderr.isatty():
        yield lambda job, sample: None
        say(f"{name}: {count} measurements are done", err=True)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(name, total=count)

        def done(job: Job, sample: Sample) -> None:
            progress.update(task, advance=1, description=f"{job.scenario}: {job.arm}, seed {job.seed}")

        yield done


def _list() -> None:
    print_table(
        "",
        (
            ("workload", "what it is", "must show"),
            [(each.name, each.title, each.must_show) for each in WORKLOADS.values()],
        ),
    )


def _show(workload: Workload, result: WorkloadResult) -> None:
    for scenario in dict.fromkeys(arm.scenario for arm in result.arms):
        arms = [arm for arm in result.arms if arm.scenario == scenario]
        baseline = next((claim.against for claim in workload.claims if claim.against), arms[0].arm)
        title = f"{workload.title} ({scenario}): seeds {result.seeds[0]} to {result.seeds[-1]}, × is to {baseline}"
        print_table(title, arms_table(arms, workload.columns, baseline))
    for arm, why in result.absent.items():
        click.echo(f"absent: {arm}: {' '.join(why.split())}", err=True)
    for each in result.arms:
        for broken in each.broken:
            click.echo(f"a rule was broken: {broken}", err=True)


def _show_verdicts(results: list[WorkloadResult]) -> None:
    verdicts = [verdict for result in results for verdict in result.verdicts]
    if verdicts:
        print_table("What must be shown", verdicts_table(verdicts))


def _store(result: WorkloadResult, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / file_name(result)
    file.write_bytes(to_json(result))
    file.with_suffix(".svg").write_text(plot(result), encoding="utf-8")
