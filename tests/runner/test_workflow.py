"""The work on one issue, with real git and files: each step may be interrupted and run again; words prove nothing."""

import os
import subprocess
from pathlib import Path

import pytest

from sm.client import UnavailableError
from sm.core.errors import error
from sm.runner.issues.issue import IssueStatus
from sm.runner.outcome import Result, RunOutcome
from sm.runner.report import report
from sm.runner.workflow import IssueWork

RUN = "R-1"
ISSUE = "FEAT-012"
PLACE = ".issues/P1-FEAT-012-log-in.md"


class KilledError(BaseException):
    """SIGKILL."""


class KeptSteps:
    """An engine that keeps what steps return; it is killed once, after a step has run and before its result is kept."""

    def __init__(self, kept=None, killed_at=None):
        self.kept = [] if kept is None else kept
        self.killed_at = killed_at
        self.number = 0
        self.slept = 0.0
        self.names = []

    def step(self, name, function):
        number, self.number = self.number, self.number + 1
        self.names.append(name)
        if number < len(self.kept):
            assert self.kept[number][0] == name  # the same decisions again
            return self.kept[number][1]
        result = function()
        if number == self.killed_at:
            raise KilledError
        self.kept.append((name, result))
        return result

    def sleep(self, seconds):
        self.slept += seconds


def only_talks(_):
    """An agent that says that it is done."""


def worked(tools, steps=None):
    return IssueWork(steps or KeptSteps(), tools, RUN, ISSUE).outcome()


def test_what_is_committed_and_passes_its_check_is_merged_and_the_repository_is_clean(repository, tools_of, logs_in):
    tools = tools_of(logs_in)
    steps = KeptSteps()
    outcome = worked(tools, steps)
    assert (outcome.result, outcome.reason, outcome.commits, outcome.attempts) == (Result.DELIVERED, "", 1, 1)
    assert repository.log[:2] == ["FEAT-012: done", "Merge sm/FEAT-012: Log in"]
    assert repository.git("rev-parse", "HEAD^") == outcome.merge
    assert outcome.checked.passed
    assert repository.git("rev-parse", f"{outcome.merge}^2") == outcome.checked.head
    assert repository.git("rev-parse", f"{outcome.merge}^{{tree}}") == repository.git(
        "rev-parse", f"{outcome.checked.head}^{{tree}}"
    )
    assert tools.source.read(ISSUE).status is IssueStatus.DONE
    assert (repository.dirty, outcome.notes) == ("", ())
    assert repository.git("branch", "--format=%(refname:short)") == "trunk"
    assert not (repository.root / ".worktrees/FEAT-012").exists()
    assert tools.sessions.ended == [outcome.session]
    assert steps.names == [
        *("survey", "prepare", "set_up", "ensure_session", "await_outcome", "await_outcome", "inspect", "update"),
        *("check", "deliver", "leaks", "record", "end_session", "cost", "tidy"),
    ]


@pytest.mark.parametrize("number", range(15))
def test_killed_after_any_step_it_continues_and_does_nothing_twice(repository, tools_of, logs_in, number):
    tools = tools_of(logs_in)
    kept = []
    with pytest.raises(KilledError):
        worked(tools, KeptSteps(kept, number))
    outcome = worked(tools, KeptSteps(kept))
    assert (outcome.result, outcome.reason, outcome.commits) == (Result.DELIVERED, "", 1)
    assert sorted(repository.log) == sorted(
        ["FEAT-012: done", "Merge sm/FEAT-012: Log in", "Write login.txt", f"Write {PLACE}", "Write README.md"]
    )
    assert len(tools.sessions.sessions) == 1
    assert repository.dirty == ""
    assert (repository.root / PLACE).read_text().count("delivered as") == 1


def test_an_agent_that_only_claims_to_be_done_delivers_nothing(repository, tools_of):
    before = repository.git("rev-parse", "HEAD")
    tools = tools_of(only_talks)
    outcome = worked(tools)
    assert (outcome.result, outcome.reason) == (Result.NEEDS_YOU, "nothing was committed")
    assert repository.git("rev-parse", "HEAD^") == before
    assert tools.source.read(ISSUE).status is IssueStatus.NEEDS_YOU


def test_what_an_agent_has_said_last_is_shown_without_secrets_and_proves_nothing(repository, tools_of):
    token = "ghp_" + "a1B2" * 9
    tools = tools_of(only_talks, [{"document": "/home/handoffs/HO.md"}] * 2)
    tools.sessions.said = f"All is done.\n\n# Which store?\nWith {token}?\n"
    outcome = worked(tools)
    assert (outcome.result, outcome.reason) == (Result.NEEDS_YOU, "nothing was committed")
    text = (repository.root / PLACE).read_text()
    assert "> The last message of its agent:\n>\n> All is done.\n>\n> # Which store?\n" in text
    assert "> Its last document: /home/handoffs/HO.md\n" in text
    assert token not in outcome.said + text
    assert "      # Which store?\n" in report(RunOutcome(RUN, "/p", (outcome,)))


def test_what_is_committed_and_fails_its_check_is_kept_with_the_reason(repository, tools_of):
    tools = tools_of(lambda prepared: repository.commit("other.txt", "x", at=prepared.place.worktree))
    outcome = worked(tools)
    assert outcome.reason == "its check failed with exit code 1: test -f login.txt"
    assert outcome.result is Result.NEEDS_YOU
    assert repository.git("log", "--format=%s", "-1", "sm/FEAT-012") == "Write other.txt"
    assert not (repository.root / "other.txt").exists()
    text = (repository.root / PLACE).read_text()
    assert "## sm: needs you" in text
    assert "> Run R-1: its check failed with exit code 1: test -f login.txt. Its branch: sm/FEAT-012." in text


def test_a_secret_that_a_check_prints_is_kept_nowhere(repository, tools_of):
    token = "ghp_" + "a1B2" * 9
    issue = repository.root / PLACE
    repository.commit(PLACE, issue.read_text().replace("test -f login.txt", f"echo {token}; false"))
    steps = KeptSteps()
    tools = tools_of(lambda prepared: repository.commit("other.txt", "x", at=prepared.place.worktree))
    assert not worked(tools, steps).checked.passed
    assert token not in next(result for name, result in steps.kept if name == "check")


def test_a_check_that_passes_on_files_that_are_not_committed_is_not_evidence(repository, tools_of):
    def agent(prepared):
        repository.commit("other.txt", "x", at=prepared.place.worktree)
        Path(prepared.place.worktree, "login.txt").write_text("in\n")

    outcome = worked(tools_of(agent))
    assert (outcome.result, outcome.reason) == (Result.NEEDS_YOU, "not committed: login.txt")


@pytest.mark.parametrize("flag", ["--assume-unchanged", "--skip-worktree"])
def test_a_change_that_git_was_made_to_overlook_is_no_evidence(repository, tools_of, flag):
    def agent(prepared):
        at = prepared.place.worktree
        repository.commit("other.txt", "x", at=at)
        repository.git("update-index", flag, "README.md", at=at)
        Path(at, "README.md").write_text("what the check wants\n")

    outcome = worked(tools_of(agent))
    assert outcome.reason == "git was made to overlook changes of README.md"


@pytest.mark.parametrize("path", [PLACE, ".issues/P0-BUG-999-mine.md", ".sprints/next.yaml", ".ISSUES/x.md"])
def test_an_agent_that_changes_an_issue_or_a_sprint_in_its_branch_delivers_nothing(repository, tools_of, logs_in, path):
    def agent(prepared):
        logs_in(prepared)
        repository.commit(path, "---\nstatus: done\ncheck: 'true'\n---\n# Mine\n", at=prepared.place.worktree)

    outcome = worked(tools_of(agent))
    assert outcome.result is Result.NEEDS_YOU
    assert outcome.reason == f"it changes what is not its own to change: {path}"
    assert not (repository.root / "login.txt").exists()


def test_an_agent_that_makes_the_check_easier_in_the_issue_itself_is_noticed(repository, tools_of):
    def agent(prepared):
        repository.commit("other.txt", "x", at=prepared.place.worktree)
        issue = repository.root / PLACE
        issue.write_text(issue.read_text().replace("test -f login.txt", "'true'"))

    outcome = worked(tools_of(agent))
    assert outcome.reason == "its check failed with exit code 1: test -f login.txt"  # the one from before


def test_an_issue_that_says_something_else_by_now_is_not_delivered(repository, tools_of, logs_in):
    def agent(prepared):
        logs_in(prepared)
        issue = repository.root / PLACE
        issue.write_text(issue.read_text() + "\nAnd log out.\n")

    outcome = worked(tools_of(agent))
    assert (outcome.result, outcome.reason) == (Result.NEEDS_YOU, "the issue was changed while it was worked on")
    assert not (repository.root / "login.txt").exists()


def test_a_trailer_that_an_agent_has_written_is_no_delivery(repository, tools_of, logs_in):
    def agent(prepared):
        logs_in(prepared)
        at = prepared.place.worktree
        repository.git("commit", "-q", "--allow-empty", "-m", "Merge\n\nSm-Issue: R-1/FEAT-012", at=at)

    outcome = worked(tools_of(agent))
    assert outcome.result is Result.DELIVERED
    assert (repository.root / "login.txt").exists()


def test_a_target_that_has_moved_is_taken_in_and_checked_before_it_is_delivered(repository, tools_of, logs_in):
    def agent(prepared):
        logs_in(prepared)
        repository.commit("meanwhile.txt", "by the user\n")

    steps = KeptSteps()
    outcome = worked(tools_of(agent), steps)
    assert (outcome.result, outcome.commits) == (Result.DELIVERED, 1)
    assert {path.name for path in repository.root.glob("*.txt")} == {"login.txt", "meanwhile.txt"}
    assert steps.names.count("check") == 1


def test_a_target_that_moves_during_the_check_is_taken_in_and_checked_again(repository, tools_of, logs_in):
    tools = tools_of(logs_in, check="")
    issue = repository.root / PLACE
    counted = repository.root.parent / "checks"
    moves = f"git -C '{repository.root}' commit -q --allow-empty -m Moved"
    command = f"echo >> '{counted}'; [ $(wc -l < '{counted}') != 1 ] || {moves}"
    repository.commit(PLACE, issue.read_text().replace("test -f login.txt", f'"{command}"'))
    outcome = worked(tools)
    assert outcome.result is Result.DELIVERED, outcome
    assert len(counted.read_text().splitlines()) == 2
    assert "Moved" in repository.log


def conflicting(repository, *resolutions):
    """An agent that conflicts with the user, and then does what its next session is to do."""
    left = list(resolutions)

    def agent(prepared):
        at = prepared.place.worktree
        if "conflict" in prepared.prompt:
            left.pop(0)(at)
        else:
            repository.commit("login.txt", "theirs\n", at=at)
            repository.commit("login.txt", "ours\n")
            repository.commit("more.txt", "ours\n")

    return agent


def resolves(repository):
    def by(text):
        def resolve(at):
            subprocess.run(["git", "-C", at, "merge", "-q", "trunk"], check=False, capture_output=True)
            repository.commit("login.txt", text, at=at)

        return resolve

    return by


def test_a_conflict_is_an_agents_to_resolve_once(repository, tools_of):
    tools = tools_of(conflicting(repository, resolves(repository)("ours\ntheirs\n")))
    steps = KeptSteps()
    outcome = worked(tools, steps)
    assert (outcome.result, outcome.reason, outcome.attempts) == (Result.DELIVERED, "", 2)
    assert (repository.root / "login.txt").read_text() == "ours\ntheirs\n"
    first, second = tools.sessions.sessions.values()
    assert tools.sessions.ended == [first, second]
    asked = tools.sessions.prompts[1]
    assert asked.startswith(tools.sessions.prompts[0])
    assert "- login.txt\n" in asked
    assert "`git merge trunk`" in asked
    assert steps.names.count("check") == 1


@pytest.mark.parametrize("number", range(9, 14))
def test_killed_at_a_conflict_it_continues_and_gives_it_to_one_agent_once(repository, tools_of, number):
    tools = tools_of(conflicting(repository, resolves(repository)("ours\ntheirs\n")))
    kept = []
    with pytest.raises(KilledError):
        worked(tools, KeptSteps(kept, number))
    outcome = worked(tools, KeptSteps(kept))
    assert (outcome.result, outcome.reason, outcome.attempts) == (Result.DELIVERED, "", 2)
    assert list(tools.sessions.sessions) == ["R-1/FEAT-012/1", "R-1/FEAT-012/2"]


def test_a_conflict_that_is_left_is_the_users_and_leaves_both_checkouts_whole(repository, tools_of):
    outcome = worked(tools_of(conflicting(repository, lambda _: None)))
    assert (outcome.result, outcome.reason) == (Result.NEEDS_YOU, "conflicts with trunk in login.txt")
    assert outcome.hint == f"git -C {repository.root}/.worktrees/FEAT-012 merge trunk"
    assert (repository.root / "login.txt").read_text() == "ours\n"
    worktree = repository.root / ".worktrees/FEAT-012"
    assert (worktree / "login.txt").read_text() == "theirs\n"
    assert repository.git("status", "--porcelain", at=worktree) == ""
    assert repository.dirty == ""


def test_a_conflict_that_is_resolved_by_dropping_the_other_side_is_not_delivered(repository, tools_of):
    def drops(at):
        repository.git("merge", "-q", "-s", "ours", "--no-edit", "trunk", at=at)

    outcome = worked(tools_of(conflicting(repository, drops)))
    assert outcome.result is Result.NEEDS_YOU
    assert outcome.reason == "it takes back what trunk has gained since it began, in login.txt, more.txt"
    assert (repository.root / "more.txt").read_text() == "ours\n"
    assert repository.git("log", "-1", "--format=%s", "sm/FEAT-012").startswith("Merge branch 'trunk'")


def test_changes_of_the_user_in_the_checkout_are_left_alone(repository, tools_of, logs_in):
    (repository.root / "README.md").write_text("mine\n")
    outcome = worked(tools_of(logs_in))
    assert (outcome.result, outcome.reason) == (Result.NEEDS_YOU, "the checkout has changes of its own: README.md")
    assert (repository.root / "README.md").read_text() == "mine\n"


def test_an_untracked_file_of_the_user_is_not_overwritten(repository, tools_of, logs_in):
    (repository.root / "login.txt").write_text("mine\n")
    outcome = worked(tools_of(logs_in))
    assert outcome.result is Result.NEEDS_YOU
    assert outcome.reason == "files of the checkout are in the way of sm/FEAT-012"
    assert (repository.root / "login.txt").read_text() == "mine\n"


def test_an_issue_file_that_the_user_was_editing_is_not_committed(repository, tools_of, logs_in):
    issue = repository.root / PLACE
    issue.write_text(issue.read_text() + "\nMore.\n")
    outcome = worked(tools_of(logs_in))
    assert outcome.result is Result.DELIVERED
    assert repository.log[0] == "Merge sm/FEAT-012: Log in"
    assert repository.dirty == f"M {PLACE}".strip() or repository.dirty.endswith(PLACE)


def test_without_a_check_nothing_is_begun(repository, tools_of, logs_in):
    issue = repository.root / PLACE
    issue.write_text(issue.read_text().replace("check: test -f login.txt\n", ""))
    tools = tools_of(logs_in)
    outcome = worked(tools)
    assert (outcome.result, outcome.reason) == (Result.NEEDS_YOU, "no command says whether it is done")
    assert tools.sessions.sessions == {}
    assert not (repository.root / ".worktrees").exists()


def test_the_check_of_the_configuration_serves_where_the_issue_has_none(repository, tools_of, logs_in):
    issue = repository.root / PLACE
    repository.commit(PLACE, issue.read_text().replace("check: test -f login.txt\n", ""))
    assert worked(tools_of(logs_in, check="test -f login.txt")).result is Result.DELIVERED


def test_an_issue_that_waits_for_another_is_not_begun_and_not_changed(repository, tools_of, logs_in):
    issue = repository.root / PLACE
    repository.commit(".issues/P1-BUG-001-first.md", "# First\n")
    repository.commit(PLACE, issue.read_text().replace("status: open\n", "status: open\nblocked_by: [BUG-001]\n"))
    outcome = worked(tools_of(logs_in))
    assert (outcome.result, outcome.reason) == (Result.SKIPPED, "waits for BUG-001, which is not chosen")
    assert repository.dirty == ""


CRASHED = {"status": "crashed", "at_rest": False, "lost_at": 5.0}
LOST = {"status": "exited", "at_rest": False, "lost_at": 7.0}
"""As by a reboot of the machine."""


@pytest.mark.parametrize("end", [CRASHED, LOST])
def test_a_session_whose_client_has_ended_is_asked_for_again_and_continues(repository, tools_of, logs_in, end):
    tools, steps = tools_of(logs_in, [end]), KeptSteps()
    outcome = worked(tools, steps)
    assert (outcome.result, outcome.attempts, outcome.continuations) == (Result.DELIVERED, 1, 0)
    assert list(tools.sessions.sessions) == ["R-1/FEAT-012/1"]
    assert steps.names.count("ensure_session") == 2


@pytest.mark.parametrize("ends", [[CRASHED, CRASHED], [{**CRASHED, "lost_at": None}]])
def test_a_client_that_stays_down_is_another_attempt_in_the_same_worktree(repository, tools_of, logs_in, ends):
    agents = [only_talks, logs_in]

    def agent(prepared):
        agents.pop(0)(prepared)

    tools = tools_of(agent, ends)
    outcome = worked(tools)
    assert (outcome.result, outcome.attempts, outcome.continuations) == (Result.DELIVERED, 2, 1)
    assert list(tools.sessions.sessions) == ["R-1/FEAT-012/1", "R-1/FEAT-012/2"]


def test_clients_that_stay_down_again_and_again_end_it(tools_of):
    outcome = worked(tools_of(only_talks, [CRASHED] * 6))
    assert (outcome.result, outcome.reason) == (
        Result.NEEDS_YOU,
        "its agent's client stays down, 3 sessions in a row",
    )


def test_contexts_of_all_attempts_are_counted(tools_of):
    more = {**CRASHED, "rotations": 2}
    outcome = worked(tools_of(only_talks, [more, more, {"status": "working", "at_rest": False, "rotations": 1}]))
    assert (outcome.reason, outcome.continuations) == ("3 continuations were not enough", 4)


def test_contexts_that_leave_nothing_behind_end_it(tools_of):
    waits = {"status": "idle", "at_rest": False, "paused": True, "detail": "waits for its user"}
    outcome = worked(tools_of(only_talks, [waits]))
    assert (outcome.result, outcome.reason) == (
        Result.UNFINISHED,
        "its contexts lead nowhere: waits for its user",
    )


BLOCKED = {"status": "blocked", "at_rest": False, "detail": "Prompt is too long"}


def test_a_client_that_refuses_to_continue_is_given_time_for_a_fresh_context(tools_of, logs_in):
    assert worked(tools_of(logs_in, [BLOCKED, BLOCKED, {"rotations": 1}, {"rotations": 1}])).continuations == 1


WAITS = {"status": "waiting", "at_rest": False, "detail": "permission to use Bash", "asks": ("ab12",)}


def test_what_is_asked_is_denied_where_that_is_configured_and_the_work_continues(tools_of, logs_in):
    tools = tools_of(logs_in, [WAITS], denies_asks=True)
    assert worked(tools).result is Result.DELIVERED
    ((asks, reason),) = tools.sessions.denied
    assert asks == ("ab12",)
    assert reason.startswith("The user is away and cannot answer")


def test_what_waits_for_the_user_is_shown_in_the_issue_and_is_no_time_of_work(tools_of, logs_in, repository):
    seen = []
    tools = tools_of(logs_in, [*[WAITS] * 20, {"status": "working", "at_rest": False}], time_limit=30.0)
    looked = tools.sessions.look

    def look(session):
        seen.append(tools.source.read(ISSUE).status)
        return looked(session)

    tools.sessions.look = look
    steps = KeptSteps()
    assert worked(tools, steps).result is Result.DELIVERED
    assert list(dict.fromkeys(seen)) == [IssueStatus.IN_PROGRESS, IssueStatus.NEEDS_YOU]
    assert seen[-1] is IssueStatus.IN_PROGRESS
    assert steps.names.count("show") == 2
    assert tools.sessions.denied == []


def test_an_ask_that_is_answered_at_once_changes_nothing_in_the_issue(tools_of, logs_in):
    steps = KeptSteps()
    assert worked(tools_of(logs_in, [WAITS, WAITS]), steps).result is Result.DELIVERED
    assert "show" not in steps.names


def test_an_answer_that_does_not_come_leaves_the_issue_to_its_user(tools_of):
    tools = tools_of(only_talks, [WAITS] * 100, ask_limit=60.0)
    outcome = worked(tools)
    reason = "your answer did not come within 60 s: permission to use Bash"
    assert (outcome.result, outcome.reason) == (Result.NEEDS_YOU, reason)
    assert tools.source.read(ISSUE).status is IssueStatus.NEEDS_YOU


QUIET = {"status": "silent", "at_rest": False, "in_request": True}


def test_a_client_that_has_stopped_working_is_ended_and_replaced(repository, tools_of, logs_in):
    agents = [only_talks, logs_in]

    def agent(prepared):
        agents.pop(0)(prepared)

    tools = tools_of(agent, [QUIET] * 20, idle_limit=60.0)
    outcome = worked(tools)
    assert (outcome.result, outcome.attempts, outcome.continuations) == (Result.DELIVERED, 2, 1)
    assert tools.sessions.ended == list(tools.sessions.sessions.values())


@pytest.mark.parametrize(
    "looks",
    [
        [{**QUIET, "in_request": False}] * 20,
        [{**QUIET, "last_activity": float(number)} for number in range(20)],
        [QUIET] * 5,
    ],
    ids=["a command runs", "it works", "not for long"],
)
def test_a_client_that_gives_signs_of_work_or_runs_a_command_is_waited_for(tools_of, logs_in, looks):
    outcome = worked(tools_of(logs_in, looks, idle_limit=60.0))
    assert (outcome.result, outcome.attempts) == (Result.DELIVERED, 1)


def test_a_client_that_refuses_for_long_ends_it(tools_of):
    outcome = worked(tools_of(only_talks, [BLOCKED] * 100))
    assert (outcome.result, outcome.reason) == (
        Result.NEEDS_YOU,
        "its client refuses to continue: Prompt is too long",
    )


def test_a_session_that_the_user_has_ended_stays_ended(tools_of):
    outcome = worked(tools_of(only_talks, [{"status": "exited", "at_rest": False}]))
    assert (outcome.result, outcome.reason, outcome.attempts) == (Result.NEEDS_YOU, "its session was ended", 1)


def test_continuations_beyond_the_limit_leave_the_issue_open(repository, tools_of):
    tools = tools_of(only_talks, [{"status": "working", "at_rest": False, "rotations": 4}])
    outcome = worked(tools)
    assert (outcome.result, outcome.reason) == (Result.UNFINISHED, "3 continuations were not enough")
    assert tools.source.read(ISSUE).status is IssueStatus.OPEN
    assert tools.sessions.ended == [outcome.session]


def test_continuations_up_to_the_limit_are_counted(tools_of, logs_in):
    outcome = worked(tools_of(logs_in, [{"rotations": 3}, {"rotations": 3}]))
    assert (outcome.result, outcome.continuations) == (Result.DELIVERED, 3)


def test_work_without_an_end_is_ended_and_says_what_it_was_doing(tools_of):
    works = {"status": "compacting", "detail": "for long", "at_rest": False}
    tools = tools_of(only_talks, [works] * 100, time_limit=60.0)
    outcome = worked(tools)
    assert outcome.result is Result.UNFINISHED
    assert outcome.reason == "it was not done within 60 s of work; at the end it was compacting, for long"


def test_time_at_a_usage_limit_is_not_time_of_work(tools_of, logs_in):
    limited = {"status": "limited", "at_rest": False}
    steps = KeptSteps()
    assert worked(tools_of(logs_in, [limited] * 100, time_limit=60.0), steps).result is Result.DELIVERED
    assert steps.slept > 600


def test_a_session_that_rests_for_a_moment_only_is_waited_for(tools_of, repository):
    def agent(prepared):
        steps.place = prepared.place.worktree

    steps = KeptSteps()
    tools = tools_of(agent, [{"last_activity": 1.0}, {"last_activity": 2.0}, {"last_activity": 3.0}])
    looked = type(tools.sessions).look

    def look(session):
        if len(tools.sessions.looks) == 1:
            repository.commit("login.txt", "in\n", at=steps.place)
        return looked(tools.sessions, session)

    tools.sessions.look = look
    assert worked(tools, steps).result is Result.DELIVERED


def test_a_server_that_is_down_for_a_while_is_waited_for(tools_of, logs_in):
    tools = tools_of(logs_in)
    failures = [UnavailableError(), UnavailableError(), error("not_answering", "starts")]
    ensured = tools.sessions.ensured

    def unavailable(*given):
        if failures:
            raise failures.pop()
        return ensured(*given)

    tools.sessions.ensured = unavailable
    steps = KeptSteps()
    assert worked(tools, steps).result is Result.DELIVERED
    assert steps.names.count("ensure_session") == 4


def test_a_step_that_is_refused_ends_the_work_with_its_words(tools_of, logs_in):
    tools = tools_of(logs_in)

    def refused(*given):
        raise error("client_not_found", "Client not found: claude", "install it")

    tools.sessions.ensured = refused
    outcome = worked(tools)
    assert (outcome.result, outcome.hint) == (Result.NEEDS_YOU, "install it")
    assert outcome.reason == "ensure_session: Client not found: claude"


def test_an_issue_that_is_gone_at_the_end_is_reported_all_the_same(repository, tools_of, logs_in):
    def agent(prepared):
        logs_in(prepared)
        (repository.root / PLACE).unlink()

    outcome = worked(tools_of(agent))
    assert outcome.result is Result.NEEDS_YOU
    assert outcome.reason == "deliver: No such issue: FEAT-012"
    assert outcome.notes == ("record: No such issue: FEAT-012",)


def test_what_fails_after_the_merge_does_not_make_it_less_delivered(repository, tools_of, logs_in):
    tools = tools_of(logs_in)

    def refused(*given):
        raise error("internal", "no")

    tools.sessions.end = refused
    outcome = worked(tools)
    assert (outcome.result, outcome.notes) == (Result.DELIVERED, ("end_session: no",))
    assert not (repository.root / ".worktrees/FEAT-012").exists()


def test_the_session_is_ended_whatever_the_result(tools_of):
    tools = tools_of(only_talks)
    outcome = worked(tools)
    assert (outcome.result, tools.sessions.ended) == (Result.NEEDS_YOU, [outcome.session])


def moving(repository, logs_in):
    """An agent during whose work the user commits."""

    def agent(prepared):
        logs_in(prepared)
        repository.commit("other.txt", "by the user\n")

    return agent


CALLS = [3, 9, 14, 21, 27, 33, 40, 46, 52]


@pytest.mark.parametrize(
    "number", [*CALLS, *(pytest.param(n, marks=pytest.mark.soak) for n in range(70) if n not in CALLS)]
)
def test_killed_after_any_command_of_git_it_continues_and_does_nothing_twice(
    repository, tools_of, logs_in, monkeypatch, number
):
    from sm.runner import git

    run, calls = git._run, []

    def killed(*given):
        done = run(*given)
        calls.append(given[1])
        if len(calls) == number + 1:
            raise KilledError
        return done

    monkeypatch.setattr(git, "_run", killed)
    tools, kept = tools_of(moving(repository, logs_in)), []
    try:
        outcome = worked(tools, KeptSteps(kept))
    except KilledError:
        outcome = worked(tools, KeptSteps(kept))
    else:
        assert number >= len(calls) - 1, "every call is tried"
    assert (outcome.result, outcome.reason, outcome.commits) == (Result.DELIVERED, "", 1)
    assert sorted(repository.log) == sorted(
        [
            *("FEAT-012: done", "Merge sm/FEAT-012: Log in", "Merge trunk into sm/FEAT-012", "Write login.txt"),
            *("Write other.txt", f"Write {PLACE}", "Write README.md"),
        ]
    )
    assert {path.name for path in repository.root.glob("*.txt")} == {"login.txt", "other.txt"}
    assert repository.dirty == ""


def test_an_item_of_a_checklist_is_worked_on_and_ticked(repository, tools_of):
    import dataclasses

    from sm.runner.issues.todo import TodoSource

    repository.commit("TODO.md", "# Work\n\n- [ ] FEAT-020: Log in\n- [ ] Log out\n")

    def agent(prepared):
        repository.commit("login.txt", "in\n", at=prepared.place.worktree)

    tools = tools_of(agent, check="test -f login.txt")
    tools = dataclasses.replace(tools, source=TodoSource(repository.root / "TODO.md"))
    outcome = IssueWork(KeptSteps(), tools, RUN, "FEAT-020").outcome()
    assert (outcome.result, outcome.reason, outcome.notes) == (Result.DELIVERED, "", ())
    assert (repository.root / "TODO.md").read_text() == "# Work\n\n- [x] FEAT-020: Log in\n- [ ] Log out\n"
    assert repository.dirty == ""


def test_an_agent_that_ticks_the_checklist_itself_delivers_nothing(repository, tools_of):
    import dataclasses

    from sm.runner.issues.todo import TodoSource

    repository.commit("TODO.md", "- [ ] FEAT-020: Log in\n")

    def agent(prepared):
        repository.commit("login.txt", "in\n", at=prepared.place.worktree)
        repository.commit("TODO.md", "- [x] FEAT-020: Log in\n", at=prepared.place.worktree)

    tools = dataclasses.replace(tools_of(agent, check="true"), source=TodoSource(repository.root / "TODO.md"))
    outcome = IssueWork(KeptSteps(), tools, RUN, "FEAT-020").outcome()
    assert outcome.reason == "it changes what is not its own to change: TODO.md"


def test_the_set_up_command_runs_in_the_worktree_before_the_agent_with_the_ports_of_the_issue(repository, tools_of):
    def agent(prepared):
        at = Path(prepared.place.worktree)
        (at / "login.txt").write_text((at / "ports.txt").read_text())
        repository.git("add", "login.txt", at=at)
        repository.git("commit", "-q", "-m", "Write login.txt", at=at)

    repository.commit(".gitignore", "ports.txt\n")
    tools = tools_of(agent, setup='echo "$PORT_OFFSET" > ports.txt', port_step=10, check="true")
    issue = repository.root / PLACE
    repository.commit(PLACE, issue.read_text().replace("test -f login.txt", "test $PORT_OFFSET = 120"))
    outcome = worked(tools)
    assert (outcome.result, outcome.reason) == (Result.DELIVERED, "")
    assert (repository.root / "login.txt").read_text() == "120\n"


def test_a_set_up_command_that_fails_costs_no_agent(tools_of, logs_in):
    tools = tools_of(logs_in, setup="echo no network; exit 3")
    outcome = worked(tools)
    assert outcome.result is Result.NEEDS_YOU
    assert outcome.reason == ("its set-up command failed with exit code 3: echo no network; exit 3 (no network)")
    assert tools.sessions.sessions == {}


def test_a_branch_is_kept_where_the_merge_is_the_users(repository, tools_of, logs_in):
    tools, before = tools_of(logs_in, deliver="branch"), repository.git("rev-parse", "HEAD")
    outcome = worked(tools)
    assert (outcome.result, outcome.offered, outcome.merge, outcome.notes) == (
        *(Result.DELIVERED, "sm/FEAT-012", "", ()),
    )
    assert repository.git("rev-parse", "HEAD^") == before
    assert not (repository.root / "login.txt").exists()
    assert repository.git("rev-parse", "sm/FEAT-012") == outcome.checked.head
    assert not (repository.root / ".worktrees/FEAT-012").exists()
    assert tools.source.read(ISSUE).status is IssueStatus.NEEDS_YOU
    assert "waits for you to merge it, as sm/FEAT-012" in (repository.root / PLACE).read_text()


GH = """#!/bin/sh
echo "$@" >> "{log}"
case "$2" in
list) cat "{listed}" ;;
create)
    cat >> "{log}"
    echo https://example.org/pull/1
    echo '[{{"url": "https://example.org/pull/1"}}]' > "{listed}" ;;
esac
"""


@pytest.fixture
def remote(repository, tmp_path, monkeypatch):
    """A remote that trunk follows as main, and a stand-in for gh; its calls are kept."""
    repository.git("init", "-q", "--bare", str(tmp_path / "remote.git"))
    repository.git("remote", "add", "hub", str(tmp_path / "remote.git"))
    repository.git("push", "-q", "-u", "hub", "trunk:main")
    log, listed, program = tmp_path / "gh.log", tmp_path / "listed", tmp_path / "bin/gh"
    listed.write_text("[]")
    program.parent.mkdir()
    program.write_text(GH.format(log=log, listed=listed))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    return log


def test_a_pull_request_is_opened_once_where_it_is_asked_for(repository, tools_of, logs_in, remote):
    tools = tools_of(logs_in, deliver="pull-request")
    kept = []
    with pytest.raises(KilledError):
        worked(tools, KeptSteps(kept, 9))
    assert kept[-1][0] == "check"
    outcome = worked(tools, KeptSteps(kept))
    assert (outcome.result, outcome.reason, outcome.offered) == (Result.DELIVERED, "", "https://example.org/pull/1")
    calls = remote.read_text()
    assert calls.count("pr create --head sm/FEAT-012 --base main --title FEAT-012: Log in --body-file -\n") == 1
    assert f"At {outcome.checked.head} this check succeeded:\n\n    test -f login.txt\n" in calls
    assert repository.git("ls-remote", "hub", "refs/heads/sm/FEAT-012").split()[0] == outcome.checked.head
    assert repository.git("ls-remote", "hub", "refs/heads/main").split()[0] != outcome.checked.head


def test_a_branch_of_that_name_in_the_remote_is_not_overwritten(repository, tools_of, logs_in, remote):
    repository.git("switch", "-q", "-c", "mine")
    repository.commit("mine.txt", "mine\n")
    repository.git("push", "-q", "hub", "mine:sm/FEAT-012")
    repository.git("switch", "-q", "trunk")
    outcome = worked(tools_of(logs_in, deliver="pull-request"))
    assert (outcome.result, outcome.reason) == (Result.NEEDS_YOU, "sm/FEAT-012 cannot be pushed to hub")
    mine = repository.git("rev-parse", "mine")
    assert repository.git("ls-remote", "hub", "refs/heads/sm/FEAT-012").split()[0] == mine


def test_without_a_remote_a_pull_request_is_the_users(tools_of, logs_in):
    outcome = worked(tools_of(logs_in, deliver="pull-request"))
    assert (outcome.result, outcome.reason) == (Result.NEEDS_YOU, "trunk follows no branch of a remote")


def test_what_an_agent_writes_into_the_main_checkout_is_noticed_and_left_there(repository, tools_of, logs_in):
    (repository.root / "notes.txt").write_text("the user's, from before\n")
    (repository.root / "old.txt").write_text("the user's, from before\n")

    def agent(prepared):
        logs_in(prepared)
        (repository.root / "src").mkdir()
        (repository.root / "src/leak.py").write_text("x = 1\n")
        (repository.root / "notes.txt").write_text("more than before\n")

    outcome = worked(tools_of(agent))
    assert outcome.result is Result.DELIVERED
    assert outcome.notes == (
        f"changed in {repository.root} at the same time, by you or by an agent: notes.txt, src/leak.py",
    )
    assert (repository.root / "src/leak.py").exists()


def test_a_tracked_file_that_an_agent_changes_in_the_main_checkout_is_named_and_nothing_is_delivered(
    repository, tools_of, logs_in
):
    def agent(prepared):
        logs_in(prepared)
        (repository.root / "README.md").write_text("leaked\n")

    outcome = worked(tools_of(agent))
    assert (outcome.result, outcome.reason) == (Result.NEEDS_YOU, "the checkout has changes of its own: README.md")
    assert outcome.notes == (f"changed in {repository.root} at the same time, by you or by an agent: README.md",)


def test_what_an_agent_commits_in_the_main_checkout_is_noticed(repository, tools_of, logs_in):
    def agent(prepared):
        logs_in(prepared)
        repository.commit("leak.txt", "x\n")

    outcome = worked(tools_of(agent))
    commit = repository.git("log", "-1", "--format=%h", "--", "leak.txt")
    assert outcome.notes == (f"committed on trunk at the same time, by you or by an agent: {commit}",)
