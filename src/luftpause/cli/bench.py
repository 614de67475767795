"""`luftpause bench`: workloads with what they must show, on our policies and on other people's routers."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import get_args

import click
import msgspec

from luftpause.cli.bench_output import Destination
from luftpause.cli.bench_progress import progress
from luftpause.cli.examples import examples
from luftpause.cli.failures import CommandFailedError
from luftpause.cli.files import OutputFile
from luftpause.cli.options import FiniteRange
from luftpause.cli.say import say
from luftpause.cli.tables import print_table
from luftpause.testkit.bench.bench import Effort, expected_s, jobs_of, measure_workload, simulate_workload
from luftpause.testkit.bench.jobs import cores
from luftpause.testkit.bench.over_http.doors import HTTP_ARMS, AbsentError
from luftpause.testkit.bench.pieces import TOLD, pieces_table
from luftpause.testkit.bench.report import counted, why_missed
from luftpause.testkit.bench.results import EngineShell, WorkloadResult
from luftpause.testkit.bench.revisions import RevisionError, checked_out, measured_at, named, with_arms
from luftpause.testkit.bench.samples import Sample
from luftpause.testkit.bench.simulated import Job
from luftpause.testkit.bench.tables import arms_table, verdicts_table
from luftpause.testkit.bench.windows import Window
from luftpause.testkit.bench.workloads import OURS, WORKLOADS, Workload

_SEEDS_MAX = 1000
_INTERRUPTED = 130
_SIM_SEEDS = 5
_STOP_SIGNALS = (signal.SIGTERM, signal.SIGHUP)


class _Options(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line said; None is each workload's own."""

    workloads: tuple[str, ...]
    engine: EngineShell
    speed: float | None
    seed: int
    seeds: int | None
    arms: tuple[str, ...] | None
    minutes: float | None
    revisions: tuple[str, ...]
    jobs: int
    json_to: str | None
    results: str | None
    strict: bool


class _Task(msgspec.Struct, frozen=True, kw_only=True):
    """A workload with all that was chosen for it."""

    workload: Workload
    engine: EngineShell
    arms: tuple[str, ...]
    effort: Effort
    window: Window
    revisions: tuple[str, ...]


def _names(ctx: click.Context, parameter: click.Parameter, value: str | None) -> tuple[str, ...] | None:
    if value is None:
        return None
    return tuple(dict.fromkeys(name.strip() for name in value.split(",") if name.strip()))


@click.command(
    short_help="Measure policies and routers on workloads.",
    epilog=examples(
        ("luftpause bench w1", "under a minute"),
        ("luftpause bench w1 w3 w6 --engine http", "over HTTP, ten minutes"),
        ("luftpause bench w1-small --engine llama", "with real tokens, six minutes"),
        ("luftpause bench w1 --arms smg,working-set", "two arms"),
        ("luftpause bench pieces --seeds 2", "what each piece is worth"),
        ("luftpause bench w1 --rev HEAD~20 --rev HEAD", "two commits side by side"),
        ("luftpause bench all --results FOLDER", "everything, stored"),
    ),
)
@click.argument("workloads", nargs=-1, metavar="WORKLOAD...")
@click.option(
    "--engine", type=click.Choice(get_args(EngineShell)), default="sim", show_default=True, help="What answers."
)
@click.option("--speed", type=FiniteRange(0.1, 1000), help="Of time, with --engine http.  [default: its own]")
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True, help="The first seed.")
@click.option("--seeds", type=click.IntRange(1, _SEEDS_MAX), help="So many in a row.  [default: 5; else 2 or 3]")
@click.option("--arms", callback=_names, metavar="A,B", help="Who schedules.  [default: all that it is made for]")
@click.option("--minutes", type=FiniteRange(0.1, 10_000), help="Counted time, planned minutes.  [default: its own]")
@click.option("--rev", "revisions", multiple=True, metavar="COMMIT", help="Measure that commit, too. Repeatable.")
@click.option("--jobs", type=click.IntRange(1, 1024), default=cores, show_default="all cores", help="Processes.")
@click.option(
    "--json",
    "json_to",
    type=OutputFile(),
    help="Write the result of one workload there, as docs/bench.schema.json has it; - prints it.",
)
@click.option("--results", metavar="FOLDER", help="Write a JSON file and a plot of each workload there.")
@click.option("--strict", is_flag=True, help="Exit with 1 when anything is not shown that must be.")
def command(**given: object) -> None:
    """Measure our policies against other people's routers, and say what is shown and what is not.

    WORKLOAD is one of those that are listed without any, or `all`. Every arm meets the same runs with the
    same tools, seed by seed; ratios are taken within a seed. `luftpause sim` simulates one scenario, also your own.

    With --engine sim time is virtual, on all cores, and other routers are models of them. With http processes are real,
    and engines are fakes with the same model and faster time. With llama the engine is llama.cpp's server with the
    small model (sh scripts/venv local).

    Other people's routers are real with http and llama: sh scripts/bench --peers installs them into .venv-bench.
    """
    options = msgspec.convert(given, _Options)
    if not options.workloads:
        _list()
        return
    try:
        tasks = _tasks(options)
        destination = Destination.of(options.json_to, options.results)
        results = _all_measured(tasks, destination)
    except (RevisionError, AbsentError) as error:
        raise CommandFailedError(str(error)) from error
    if not destination.prints_json:
        _show_verdicts(results)
    is_shown = all(verdict.met for result in results for verdict in result.verdicts)
    is_broken = any(not result.arms or any(arm.broken for arm in result.arms) for result in results)
    if is_broken or (options.strict and not is_shown):
        raise click.exceptions.Exit(1)


def _all_measured(tasks: list[_Task], destination: Destination) -> list[WorkloadResult]:
    """Measure and keep one after the other; when stopped, say what is kept."""
    results: list[WorkloadResult] = []
    try:
        with _stopped_as_by_ctrl_c():
            for task in tasks:
                results.append(_measured(task))
                if not destination.prints_json:
                    _show(task.workload, results[-1])  # first: what took long is seen even where it cannot be kept
                if results[-1].arms or destination.prints_json:  # nothing takes the place of what was measured before
                    _keep(destination, results[-1])
    except KeyboardInterrupt:
        kept = ", ".join(result.workload for result in results) if destination.is_given else ""
        say(f"stopped; {f'{kept} is kept' if kept else 'nothing is kept'}", err=True)
        raise click.exceptions.Exit(_INTERRUPTED) from None
    return results


def _keep(destination: Destination, result: WorkloadResult) -> None:
    try:
        destination.keep(result)
    except BrokenPipeError:
        raise  # nobody reads any more
    except OSError as error:
        raise CommandFailedError(f"{result.workload} cannot be kept: {error.strerror}") from error


@contextmanager
def _stopped_as_by_ctrl_c() -> Iterator[None]:
    """Let every signal that asks for an end, that of a closed terminal too, be a Ctrl-C, or engines would outlive us.

    An event loop heeds Ctrl-C in its own way: an exception out of nowhere would be lost in its callbacks.
    """
    before = {number: signal.getsignal(number) for number in _STOP_SIGNALS}
    heeded = [number for number, handler in before.items() if handler is not signal.SIG_IGN]
    for number in heeded:
        signal.signal(number, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        yield
    finally:
        for number in heeded:
            signal.signal(number, before[number])


def _tasks(options: _Options) -> list[_Task]:
    """Return what is to be measured, or refuse before anything is.

    Raises:
        RevisionError: a commit cannot be measured.
    """
    chosen = _chosen(options)
    if options.speed is not None and options.engine != "http":
        raise click.UsageError("--speed is that of fake engines: give --engine http")
    if options.json_to is not None and len(chosen) > 1:
        raise click.UsageError("--json takes the result of one workload; --results FOLDER takes those of several")
    revisions = tuple(dict.fromkeys(named(revision) for revision in options.revisions))
    return [_task(workload, options, revisions) for workload in chosen]


def _task(workload: Workload, options: _Options, revisions: tuple[str, ...]) -> _Task:
    own = workload.window(options.engine)
    seeds = options.seeds or (_SIM_SEEDS if options.engine == "sim" else workload.seeds)
    return _Task(
        workload=workload,
        engine=options.engine,
        arms=_arms(workload, options),
        effort=Effort(
            seeds=tuple(range(options.seed, options.seed + seeds)), minutes=options.minutes, processes=options.jobs
        ),
        window=Window(
            warmup_s=own.warmup_s,
            minutes=options.minutes or own.minutes,
            speed=options.speed or own.speed,
            real=own.real,
        ),
        revisions=revisions,
    )


def _chosen(options: _Options) -> list[Workload]:
    able = {name: each for name, each in WORKLOADS.items() if options.engine in each.engines}
    asked = dict.fromkeys(name.lower() for name in options.workloads)
    names = able if "all" in asked else asked
    unknown = [name for name in names if name not in WORKLOADS]
    if unknown:
        raise click.BadParameter(f"no workload {', '.join(unknown)!r}; there are {', '.join(WORKLOADS)} and all")
    for name in names:
        if name not in able:
            engines = " or ".join(WORKLOADS[name].engines)
            raise click.BadParameter(f"{name} cannot be measured on {options.engine}: give --engine {engines}")
    return [able[name] for name in names]


def _arms(workload: Workload, options: _Options) -> tuple[str, ...]:
    is_real = options.engine != "sim"
    able = tuple(arm for arm in workload.arms if not is_real or arm in HTTP_ARMS)
    if options.arms is None:
        return workload.arms_on(options.engine)
    if not options.arms:
        raise click.BadParameter(f"no arm is named; in {workload.name} there are {', '.join(able)}")
    unknown = ", ".join(name for name in options.arms if name not in able)
    if unknown:
        raise click.BadParameter(f"no arm {unknown!r} in {workload.name}; there are {', '.join(able)}")
    return options.arms


def _measured(task: _Task) -> WorkloadResult:
    workload = task.workload
    of_ours = _of_ours(task)
    jobs = len(jobs_of(workload, task.arms, task.effort))
    with progress(workload.name, jobs + len(task.revisions) * len(of_ours), _expected_s(task, jobs)) as steps:

        def begins(job: Job) -> None:
            steps.begins(_said(job))

        def done(job: Job, _: Sample) -> None:
            steps.done(_said(job))

        if task.engine == "sim":
            result = simulate_workload(workload, task.arms, task.effort, done)
        else:
            result = measure_workload(workload, task.arms, task.effort, task.window, done, begins)
        for name in task.revisions:
            with checked_out(name) as folder:
                more = measured_at(folder, name, (workload.name, of_ours), _same(task), steps)
                result = with_arms(result, more, workload)
    return result


def _said(job: Job) -> str:
    return f"{job.scenario}: {job.arm}, seed {job.seed}"


def _expected_s(task: _Task, jobs: int) -> float | None:
    """Return how long it takes where real time passes, other commits included, seconds."""
    if task.engine == "sim":
        return None
    of_others = len(task.revisions) * len(_of_ours(task)) * len(task.workload.scenarios) * len(task.effort.seeds)
    return expected_s(jobs + of_others, task.window)


def _of_ours(task: _Task) -> list[str]:
    """Return the arms that another commit is measured in: ours of those that were chosen, all if none of them is."""
    ours: list[str] = [arm for arm in OURS if arm in task.workload.arms]
    return [arm for arm in ours if arm in task.arms] or ours


def _same(task: _Task) -> list[str]:
    """Return the options that another commit is to be measured with."""
    effort = task.effort
    same = ["--engine", task.engine, "--jobs", str(effort.processes)]
    same += ["--seed", str(effort.seeds[0]), "--seeds", str(len(effort.seeds))]
    if task.engine != "sim":
        same += ["--speed", f"{task.window.speed:g}"] if task.engine == "http" else []
        return [*same, "--minutes", f"{task.window.minutes:g}"]
    return same if effort.minutes is None else [*same, "--minutes", f"{effort.minutes:g}"]


def _list() -> None:
    print_table(
        "",
        (
            ("workload", "what it is", "must show", "engines"),
            [(each.name, each.title, each.must_show, ", ".join(each.engines)) for each in WORKLOADS.values()],
        ),
    )


def _show(workload: Workload, result: WorkloadResult) -> None:
    for scenario in dict.fromkeys(arm.scenario for arm in result.arms):
        arms = [arm for arm in result.arms if arm.scenario == scenario]
        names = [arm.arm for arm in arms]
        baseline = next((claim.against for claim in workload.claims if claim.against in names), None) or names[0]
        title = f"{workload.title} ({scenario}): {_seeds(result)}, × is to {baseline}, * is best"
        print_table(title, arms_table(arms, workload.columns, baseline))
    if (pieces := pieces_table(result)) is not None:
        print_table(f"What each piece is worth, {_seeds(result)}", pieces)
        click.echo(TOLD)
    for arm, why in result.absent.items():
        click.echo(f"absent: {arm}: {' '.join(why.split())}", err=True)
    if result.engine != "sim" and result.arms:
        click.echo("; ".join(f"{name} {value}" for name, value in result.setup.items()))
        if result.machine.load_before > result.machine.cores / 2:
            load = f"load average {result.machine.load_before:.1f} on {result.machine.cores} cores"
            click.echo(f"{load} before it began: what else runs here shows in these figures", err=True)
    if not result.arms:
        click.echo(f"error: nothing of {workload.name} could be measured", err=True)
    for each in result.arms:
        for broken in each.broken:
            click.echo(f"a rule was broken: {broken}", err=True)


def _seeds(result: WorkloadResult) -> str:
    first, *others = result.seeds
    return f"medians of seeds {first} to {others[-1]} (least–greatest)" if others else f"seed {first}"


def _show_verdicts(results: list[WorkloadResult]) -> None:
    verdicts = [verdict for result in results for verdict in result.verdicts]
    if verdicts:
        print_table("What must be shown", verdicts_table(verdicts))
        for line in (counted(results).replace("`", ""), *(f"missed, {line}" for line in why_missed(results))):
            click.echo(line)
