"""What `make NAME` runs: the one definition of set-up, demo, check, tests, soak, lint and bench.

Only the standard library: it runs before anything is installed. Set-up is done again when a file it depends on has
changed; everything goes into the checkout (.venv, clients) and nowhere else.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import browser

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
BIN = VENV / "bin"
CLIENTS = ROOT / "clients"
OLDEST, NEWEST = CLIENTS / "oldest", CLIENTS / "newest"
"""Where the other clients are that the plugin is tried on, each with a package.json that pins it."""
CODEX = CLIENTS / "codex"
"""Where Codex is: 424 MB, installed only for what runs it."""
PYTHON_INPUTS = ("pyproject.toml", "constraints.txt", "src/sm/__init__.py")
PYTEST = (BIN / "python", "-m", "pytest")
SIDE_BY_SIDE = (*PYTEST, "-n", "4", "--dist", "worksteal")
"""More at once than there are processors: most of a test on the real client is waiting."""
MEASURED = (BIN / "python", "-m", "coverage")
MEASURING = {**os.environ, "COVERAGE_FILE": str(VENV / "measured" / "coverage")}
MEASURING_ALL = {**os.environ, "COVERAGE_FILE": str(VENV / "measured" / "all")}
"""Apart from the core's: what an interrupted `make soak` leaves is not read by `make check`."""
EACH_PROCESS = """[run]
branch = true
parallel = true
include = {source}/*
omit = {source}/core/ports/*
patch = _exit, fork
sigterm = true
data_file = {data}
"""
"""As in pyproject.toml, but for a process in any directory, whose environment a test may compare."""
MEASURES_ITSELF = """
import os
os.environ["COVERAGE_PROCESS_START"] = {settings!r}
try:
    import coverage
    coverage.process_startup()
except OSError:
    pass  # its working directory is gone
del os.environ["COVERAGE_PROCESS_START"]
"""
REACHING = "not soak and not e2e"
"""The tests that reach what the gate wants: those on the real client reach little more, and take longer."""
CORE = ("tests/core", "tests/digest")
UNIT = (
    *(f"tests/{name}" for name in ("engine", "store", "providers", "archive", "runner")),
    *(f"tests/test_{name}.py" for name in ("docs", "earlier_tools", "names", "scenarios", "shape", "words")),
)
"""What `make check` tests beside them: folders where no test starts a server or a client, and what reads the tree."""
PROCESSES = tuple(
    f"--ignore=tests/{name}.py"
    for name in (
        *(f"runner/test_{name}" for name in ("check", "durable", "runs", "workers", "workflow")),
        "providers/test_codex_app_pane",
    )
)
"""Not with it: they start processes of the durable engine, a few hundred of git, or terminals that they wait for."""
NEEDED = {
    "tmux": "install tmux 3.2 or newer with your package manager",
    "npm": "install Node.js 18 or newer, which brings npm",
    "git": "install git with your package manager",
}


def run(*command: str | Path, cwd: Path = ROOT, env: dict[str, str] | None = None) -> None:
    result = subprocess.run([str(part) for part in command], cwd=cwd, env=env, check=False)
    if result.returncode:
        sys.exit(result.returncode)


def digest(names: tuple[str, ...]) -> str:
    """Fingerprint of the files a step depends on and of the place it was done in (a moved venv is a broken venv)."""
    total = hashlib.sha256(f"{ROOT}\n{sys.version}".encode())
    for name in names:
        content = (ROOT / name).read_bytes()
        if name == "pyproject.toml":  # how tools are set changes nothing that is installed
            table = tomllib.loads(content.decode())
            content = repr([table["build-system"], table["project"], table["dependency-groups"]]).encode()
        total.update(content)
    return total.hexdigest()


def needs(stamp: Path, names: tuple[str, ...], product: Path) -> bool:
    return not product.exists() or not stamp.exists() or stamp.read_text() != digest(names)


def setup() -> None:
    """Install the package with its development tools, and the pinned client."""
    for tool, hint in NEEDED.items():
        if shutil.which(tool) is None:
            sys.exit(f"error: {tool} not found\nhint: {hint}")
    stamp = VENV / ".sm-setup"
    if needs(stamp, PYTHON_INPUTS, BIN / "sm"):
        print("setting up .venv", flush=True)
        run(sys.executable, "-m", "venv", "--clear", VENV)
        pip = (BIN / "python", "-m", "pip", "install", "-qq", "--disable-pip-version-check")
        run(*pip, "--upgrade", "pip", "-c", "constraints.txt")
        run(*pip, "-c", "constraints.txt", "--group", "dev", "--editable", ".")
        stamp.write_text(digest(PYTHON_INPUTS))
    install(CLIENTS)


def program(place: Path) -> Path:
    if place == browser.PLACE:
        return browser.CHROMIUM
    return place / "node_modules" / ".bin" / ("codex" if place == CODEX else "claude")


def install(place: Path) -> None:
    """Install the client that the package.json there pins."""
    inputs = (str((place / "package.json").relative_to(ROOT)),)
    stamp = place / "node_modules" / ".sm-setup"
    if needs(stamp, inputs, program(place)):
        print(f"setting up the client of {inputs[0]}", flush=True)
        quiet = ("--no-audit", "--no-fund", "--no-package-lock", "--no-update-notifier", "--silent")
        run("npm", "install", *quiet, cwd=place)
        if place == browser.PLACE:
            browser.unpack()
        else:
            run(program(place), "--version")
        stamp.write_text(digest(inputs))


def demo(*arguments: str) -> None:
    run(BIN / "sm", "demo", *arguments)


@contextlib.contextmanager
def beside(*command: str | Path, env: dict[str, str] | None = None) -> Iterator[None]:
    """Run a command beside whatever is done inside, and print what it says afterwards."""
    told = subprocess.PIPE
    with subprocess.Popen(
        [str(part) for part in command], cwd=ROOT, env=env, stdout=told, stderr=subprocess.STDOUT
    ) as process:
        try:
            yield
        finally:
            print(process.communicate()[0].decode(errors="replace"), end="", flush=True)
    if process.returncode:
        sys.exit(process.returncode)


@contextlib.contextmanager
def linted() -> Iterator[None]:
    """Lint, with the types checked beside whatever is done inside: half a minute where mypy has no cache."""
    install(OLDEST)
    install(NEWEST)
    run(BIN / "ruff", "check", ".")
    run(BIN / "ruff", "format", "--check", ".")
    run(BIN / "lint-imports", "--no-cache")
    with beside(BIN / "mypy"), beside(BIN / "python", "scripts/plugin.py"):
        yield


def lint(*_: str) -> None:
    with linted():
        pass


def check(*_: str) -> None:
    """What one runs before each commit: lint, and the tests that need neither a server nor a terminal.

    Those of the core, measured, run in one process beside the others: they reach its every line and every branch.
    """
    quick = ("-q", "-m", "not soak", "--hypothesis-profile=few")
    measured = (*MEASURED, "run", "--source=sm.core", "-m", "pytest", *quick, *CORE)
    with linted(), beside(*measured, env=MEASURING):
        run(*PYTEST, *quick, "-n", "3", "--dist", "worksteal", *PROCESSES, *UNIT)
    _measured(100, MEASURING)


def _measured(least: int, env: dict[str, str]) -> None:
    """Fail where the tests that have just run reach less than so many percent of what was measured."""
    run(*MEASURED, "combine", "-q", env=env)
    run(*MEASURED, "report", "--skip-covered", "--show-missing", "--precision=2", f"--fail-under={least}", env=env)


def test(*arguments: str) -> None:
    install(CODEX)
    install(browser.PLACE)
    if arguments:
        run(*PYTEST, *arguments)
    else:
        with linted():
            run(*SIDE_BY_SIDE, "-m", "not soak")


@contextlib.contextmanager
def measuring_processes() -> Iterator[None]:
    """Measure each process of this .venv's Python that starts inside, whoever starts it and in whatever environment.

    Python reads a `.pth` file at each start. It is removed at the end, so that no process is measured at other times.
    A process that is killed, or that starts without site packages, is not measured. The first run counts the modules
    that no process loads as unreached.
    """
    data = Path(MEASURING_ALL["COVERAGE_FILE"])
    data.parent.mkdir(exist_ok=True)
    settings = data.with_name("settings")
    settings.write_text(EACH_PROCESS.format(data=data, source=ROOT / "src" / "sm"))
    run(*MEASURED, "erase", env=MEASURING_ALL)
    run(*MEASURED, "run", "-m", "sm", "--version", env=MEASURING_ALL)
    starter = next(VENV.glob("lib/python*/site-packages")) / "sm_measured.pth"
    starter.write_text(f"import sys; exec({MEASURES_ITSELF.format(settings=str(settings))!r})\n")
    try:
        yield
    finally:
        starter.unlink(missing_ok=True)


def soak(*arguments: str) -> None:
    """What takes long: every case of the tests that have many, laws on many more examples, fifty agents' messages.

    All tests that need no real client run once more, measured: they reach most of every package. A part that fails does
    not keep the next from running: what takes hours is to tell everything at once.
    """
    install(CODEX)
    install(browser.PLACE)
    failed: list[str] = []
    with noted(failed, "every case and law"):
        run(*SIDE_BY_SIDE, "-m", "soak or law", "--hypothesis-profile=many", *arguments)
    for place in (OLDEST, NEWEST, registered()):
        with noted(failed, f"the client of {place.relative_to(ROOT)}"):
            install(place)
            run(*SIDE_BY_SIDE, "-m", "matrix", env={**os.environ, "SM_TESTED_CLIENT": str(program(place))})
    with noted(failed, "what the tests reach"):
        with measuring_processes():
            run(*SIDE_BY_SIDE, "-m", REACHING, "--hypothesis-profile=few")
        _measured(95, MEASURING_ALL)
    with noted(failed, "fifty agents' messages"):
        run(BIN / "python", "-m", "bench", "soak")
    if failed:
        sys.exit(f"soak: failed: {'; '.join(failed)}")
    print("soak: every part passed")


@contextlib.contextmanager
def noted(failed: list[str], part: str) -> Iterator[None]:
    """Say which part runs, and note it as failed where a command in it does."""
    print(f"soak: {part}", flush=True)
    try:
        yield
    except SystemExit as end:
        if not end.code:
            raise
        print(f"soak: {part}: failed", flush=True)
        failed.append(part)


def registered() -> Path:
    """Return where the newest client that the registry has is to be installed."""
    package = json.loads((CLIENTS / "package.json").read_text())
    [name] = package["dependencies"]
    shown = subprocess.run(["npm", "view", name, "version"], capture_output=True, text=True, check=True)
    place = CLIENTS / "registered"
    place.mkdir(exist_ok=True)
    content = {"private": True, "dependencies": {name: shown.stdout.strip()}}
    (place / "package.json").write_text(json.dumps(content))
    return place


def bench(*arguments: str) -> None:
    install(CODEX)
    run(BIN / "python", "-m", "bench", *arguments)


TASKS = {
    "setup": lambda *_: None,
    "demo": demo,
    "check": check,
    "test": test,
    "soak": soak,
    "lint": lint,
    "bench": bench,
}


def main() -> None:
    name, *arguments = sys.argv[1:] or [""]
    if name not in TASKS:
        sys.exit(f"usage: python3 scripts/tasks.py {'|'.join(TASKS)} [ARGUMENTS]")
    os.chdir(ROOT)
    setup()
    TASKS[name](*arguments)


if __name__ == "__main__":
    main()
