"""Each section of the document, from small conversations with right values, and what must never be in it."""

import pytest

from sm.core.model.handoff import document_limit
from sm.digest import transcript_events as events
from sm.digest.collector import collected
from sm.digest.document import Repository, document
from sm.providers.claude.traits import CLAUDE

LIMIT = document_limit(CLAUDE)


def said(text, *, interrupting=False, pasted=0):
    return events.UserSaid(text, interrupting, pasted)


def between(text):
    return events.AgentReplied(text, closing=False)


def closing(text):
    return events.AgentReplied(text, closing=True)


def run(command, output="", *, failed=False):
    return events.CommandRan(command, failed, output)


def edit(path):
    return events.FileChanged(path, events.Change.EDITED)


def made(*events, repository=None, redact=str, limit=LIMIT):
    return document(collected(events, redact), repository or Repository(), limit)


def section(text, heading):
    """The lines under a heading, without the line that says how to read them."""
    lines = text.partition(f"\n### {heading}\n")[2].partition("\n#")[0].splitlines()
    return [line for line in lines if line and not line.endswith(":")]


# --- what the person wants ------------------------------------------------------------------------------------------


def test_the_first_request_is_quoted():
    assert section(made(said("Add a dry run to the importer.")), "Primary Intent") == [
        '- "Add a dry run to the importer."'
    ]


@pytest.mark.parametrize(
    "turn",
    [
        "Change of plan: build the CSV export first.",
        "Stop. The export has become more urgent, please build it.",
        "Forget the dry run. Write the export.",
        "Something else: can you build the CSV export?",
        "Planänderung: baue zuerst den Export.",
        "予定変更です。先にCSVの書き出しを作ってください。",
    ],
)
def test_a_later_request_is_marked_as_the_latest(turn):
    text = made(
        said("Add a dry run to the importer."), closing("Half done."), said(turn), closing("On it."), said("ok")
    )
    first, second = section(text, "Primary Intent")
    assert first == '- "Add a dry run to the importer."'
    assert second == f'- "{turn}" (the latest)'


@pytest.mark.parametrize(
    "rule",
    [
        "Never run the migrations against staging.",
        "vendor/ is off limits.",
        "Stick with the client we have, no new dependencies.",
        "Kafka, not RabbitMQ",
        "Ändere nichts unter vendor/, das gehört dem anderen Team.",
        "vendor/ 以下は一切変更しないでください。",
        "Ne touche à rien sous vendor/.",
    ],
)
def test_rules_are_quoted_whole(rule):
    text = made(said("Add a dry run."), said(rule), closing("Fine."), said("How far are you?"))
    assert section(text, "User-Specified Constraints") == [f'- "{rule}"']


def test_a_rule_inside_an_account_is_found():
    account = "The team had 12 incidents in June and the notes are thin. Never import twice. Anyway, have fun with it."
    text = made(said("Add a dry run."), said(account), closing("Fine."), said("How far are you?"))
    assert '- "Never import twice."' in section(text, "User-Specified Constraints")


def test_nods_are_nothing_and_short_orders_are_something():
    text = made(
        said("Add a dry run."), said("ok, go on"), said("+1"), said("use tabs"), closing("Fine."), said("Status?")
    )
    assert section(text, "Primary Intent") == ['- "Add a dry run."', '- "use tabs" (the latest)', '- "Status?"']
    assert section(text, "What Happened")[0] == "- 5 messages of the user, 1 text of the agent."


def test_an_answer_is_quoted_with_its_question():
    text = made(
        said("Add a dry run."),
        closing("Done.\nShould it be on by default?"),
        said("yes"),
        closing("Ok."),
        said("Status?"),
    )
    assert section(text, "Primary Intent")[1].startswith('- "yes" (answering: Should it be on by default?)')


@pytest.mark.parametrize(
    "frame",
    [
        "Read /p/.sm/handoff.md and continue from where you left off.",
        "Read /p/.sm/handoff.md and continue from where you left off.\nStill running in the background: make soak",
        "[sm context] Context critically high. Write your handoff doc NOW and run `sm handoff <path>`.",
        "[Input from: builder (12345678) via sm send] (message m1)\nRead /p/x and deploy.",
    ],
)
def test_what_sm_typed_is_not_the_persons(frame):
    text = made(said(frame), closing("Going on."))
    assert "Read /p" not in text
    assert "[sm context]" not in text


def message(text, sender="builder (12345678)"):
    return events.AgentMessaged(sender, text)


def test_the_task_of_a_child_is_quoted_and_is_not_the_users():
    text = made(message("Fix the parser."), closing("Done."), message("Now the printer."), closing("Done too."))
    assert section(text, "Messages of Other Agents") == [
        '- builder (12345678): "Fix the parser."',
        '- builder (12345678): "Now the printer."',
    ]
    assert section(text, "Primary Intent") == ["None"]
    assert "**User" not in text
    counts = "- 0 messages of the user, 2 messages of other agents, 2 texts of the agent."
    assert section(text, "What Happened")[0] == counts


def test_a_childs_task_is_kept_where_little_fits():
    noise = [closing("I found that the cache is never emptied, because the lock is held. " * 20) for _ in range(40)]
    text = made(message("Fix the parser."), *[message(f"Note {n}.") for n in range(500)], *noise, limit=3_000)
    lines = section(text, "Messages of Other Agents")
    assert lines[0] == '- builder (12345678): "Fix the parser."'
    assert lines[-1] == '- builder (12345678): "Note 499."'


def test_a_childs_task_survives_a_chain_of_handoffs():
    text = made(message("Fix the parser."), closing("Going on."))
    for number in range(3):
        text = made(events.HandoffRead(f"HO-{number}", text), closing("Going on."))
    assert [line for line in text.splitlines() if "Fix the parser." in line] == [
        '- Messages of Other Agents: builder (12345678): "Fix the parser."'
    ]


def test_a_message_taken_back_is_gone():
    text = made(said("Add a dry run."), message("Delete all tests."), closing("Deleted."), events.Rewound(1))
    assert "elete" not in text


def test_the_last_exchange_stands_in_the_order_in_which_it_was_said():
    answered = made(said("Fix the build."), closing("It is fixed."))
    assert answered.index("**User, last words:**") < answered.index("**Assistant, since then:**")
    asked = made(closing("The endpoint is next."), said("Hand off now."))
    assert asked.index("**Assistant, before that:**\n> The endpoint is next.") < asked.index(
        "**User, last words:**\n> Hand"
    )


def test_one_of_a_thing_is_told_as_one():
    assert section(made(said("Fix the build."), closing("Ok.")), "What Happened") == [
        "- 1 message of the user, 1 text of the agent."
    ]


def test_words_taken_back_are_gone():
    text = made(
        said("Add a dry run."),
        said("Delete all tests."),
        closing("Deleted."),
        events.Rewound(1),
        said("Keep the tests."),
    )
    assert "Delete all" not in text
    assert "Deleted" not in text


# --- what happened --------------------------------------------------------------------------------------------------


def test_a_failure_with_what_settled_it():
    text = made(
        said("Fix the build."),
        run("make all", "cc: fatal error: pump.h: No such file", failed=True),
        edit("Makefile"),
        run("make all"),
        between("That was it: the include path lacked gen/."),
        closing("Done."),
    )
    (line,) = section(text, "Errors and Resolutions")
    assert line.startswith("- fixed, now passes: `make all` failed: cc: fatal error: pump.h: No such file — ")
    assert line.endswith(" — That was it: the include path lacked gen/.")


def test_a_failure_that_stays_open_stands_first():
    text = made(
        run("make a", "error: a", failed=True),
        edit("a"),
        run("make a"),
        run("make b", "error: b", failed=True),
        edit("b"),
        run("make b", "error: b2", failed=True),
    )
    first, second = section(text, "Errors and Resolutions")
    assert first == "- **open**, last run: `make b` failed 2 ×: error: b2"
    assert second.startswith("- fixed, now passes: `make a` failed: error: a")


def test_files_with_counts():
    text = made(
        events.WorkingDirectory("/p", "main"),
        edit("/p/a.py"),
        edit("/p/a.py"),
        events.FileChanged("/p/b.py", events.Change.CREATED),
        run("git rm -q c.py && git mv d.py e.py"),
        run("rm f.py", failed=True),
        edit("/elsewhere/g.py"),
    )
    assert sorted(section(text, "Code Changes")) == [
        "- `/elsewhere/g.py`: edited",
        "- `a.py`: edited, 2 edits",
        "- `b.py`: created",
        "- `c.py`: deleted",
        "- `e.py`: renamed from `d.py`",
    ]


# --- where it stands ------------------------------------------------------------------------------------------------


def test_todos_tasks_and_what_was_cut_short():
    text = made(
        events.TodosChanged(
            (("a", events.TodoState.DONE), ("b", events.TodoState.STARTED), ("c", events.TodoState.OPEN))
        ),
        events.TaskStarted("b1", "Soak test", "make soak"),
        events.TaskStarted("b2", "Other"),
        events.TaskEnded("b2"),
        events.CallInterrupted("/p/x.py", "/p/x.py"),
        events.CallInterrupted("/p/y.py", "/p/y.py"),
        edit("/p/y.py"),
        events.CallInterrupted("git push", refused=True),
        events.CallInterrupted("sm handoff --auto"),
    )
    assert section(text, "What Was Being Worked On") == [
        "- Interrupted, not applied: the edit of `/p/x.py`",
        "- Still running in the background: Soak test (`make soak`), id b1",
        "- [~] in progress: b",
    ]
    assert section(text, "User Feedback") == ["- Refused by the user, not applied: `git push`"]
    assert section(text, "Todo List State") == ["- Todo list: 1 of 3 done", "- [x] a", "- [ ] c"]


def test_the_last_exchange_is_quoted_whole_and_the_next_step_named():
    text = made(
        said("Add a dry run."),
        closing("Done."),
        said("How far?\nAnd what next?"),
        closing("Half way.\n\nNext I will test it."),
    )
    assert section(text, "Direct Quote") == [
        "**Assistant, before that:**",
        "> Done.",
        "**User, last words:**",
        "> How far?",
        "> And what next?",
        "**Assistant, since then:**",
        "> Half way.",
        "> Next I will test it.",
    ]
    assert section(text, "Next Step") == ["- Announced: Next I will test it."]


def test_a_huge_last_message_keeps_both_its_ends():
    text = made(said("first " + "x" * 50_000 + " last"), closing("y" * 50_000))
    assert "> first x" in text
    assert "x last" in text
    assert len(text) <= LIMIT


# --- what to know ---------------------------------------------------------------------------------------------------

CHOICES = [
    "Decision: cursors rather than offsets, because rows are inserted while clients page.",
    "I'm going with cursors instead of offsets: rows are inserted while clients page.",
    "Entscheidung: Zeiger statt Seitenzahlen, weil beim Blättern Zeilen dazukommen.",
    "決定: オフセットではなくカーソルを使います。理由は、行が増えるためです。",
    "Décision : un curseur plutôt que des pages fixes, car des lignes arrivent.",
]


@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize("place", ["between", "closing", "bullet"])
def test_a_choice_with_its_reason(choice, place):
    told = {
        "between": [between("Looking."), between(choice)],
        "closing": [closing(f"The list is rendered now.\n\n- one thing\n- another\n\n{choice}")],
        "bullet": [closing(f"The list is rendered now.\n\n- one thing\n- {choice}")],
    }[place]
    text = made(said("Page the list."), *told, closing("Done."), said("Status?"), closing("All set."))
    assert f"- {choice}" in section(text, "Decisions Made")


def test_a_choice_that_a_later_one_reverses_is_left_out():
    text = made(
        said("Page the list."),
        between("I'm going with a content hash as cache key: clocks disagree."),
        between("I'm going with a version column instead of a content hash as cache key: hashing takes a second."),
        closing("Done."),
        said("Status?"),
        closing("All set."),
    )
    assert len(section(text, "Decisions Made")) == 1
    assert "version column" in section(text, "Decisions Made")[0]


def test_what_the_person_chose():
    assert section(made(events.QuestionAnswered("Which id wins?", "the newer")), "Decisions Made") == [
        '- The user chose for "Which id wins?": the newer'
    ]


def test_findings_with_their_place():
    text = made(
        said("Review it."),
        closing("I read it.\n\npump.py:31: the retry has no bound."),
        closing("More."),
        closing("End."),
    )
    assert section(text, "Gotchas Discovered") == ["- pump.py:31: the retry has no bound."]


def test_announcements_are_no_statements():
    text = made(
        said("Go."),
        *[between(f"Let me look at src/pump/file_{n}.py, it is read first.") for n in range(9)],
        closing("Done."),
    )
    assert "Let me look" not in text


# --- where it is ----------------------------------------------------------------------------------------------------


def test_git_from_the_repository_and_the_commits_of_this_conversation():
    repository = Repository("feat/x", (" M a.py", "?? b.py"), ("1234567 add y", "0a1b2c3 base"))
    text = made(
        events.WorkingDirectory("/p", "main"), run("git commit -m y", "[feat/x 1234567] add y"), repository=repository
    )
    assert section(text, "Current Git Status") == [
        "- Branch: `feat/x`",
        "- Committed in this session: 1234567 add y",
        "- Earlier commit: 0a1b2c3 base",
        "- Not committed: ` M a.py`",
        "- Not committed: `?? b.py`",
    ]


def test_many_uncommitted_paths_are_counted():
    text = made(repository=Repository("main", tuple(f"?? f{n}" for n in range(30))))
    assert section(text, "Current Git Status")[-1] == "- and 10 more uncommitted paths"


def test_what_still_holds_of_the_handoff_before():
    before = "# Goal\nShip it.\n\n## What happened\nMuch.\n\n### User-Specified Constraints\nAs said:\n- No floats.\n"
    text = made(
        events.HandoffRead("HO-1", before),
        said("Read x.md and continue from where you left off."),
        closing("Going on."),
    )
    assert section(text, "From the Handoff Before") == [
        "- Its id: HO-1",
        "- Goal: Ship it.",
        "- User-Specified Constraints: No floats.",
    ]


def test_what_still_holds_survives_a_chain_of_handoffs():
    text = "No headings here: ship the importer.\n"
    for number in range(4):
        text = made(
            events.HandoffRead(f"HO-{number}", text),
            said("Never push."),
            closing("Ok."),
            said("Status?"),
            closing("Fine."),
        )
    lines = section(text, "From the Handoff Before")
    assert lines[0] == "- Its id: HO-3"
    assert "- No headings here: ship the importer." in lines
    assert len([line for line in lines if "Never push." in line]) == 1


# --- always ---------------------------------------------------------------------------------------------------------


def test_no_secret_comes_through_wherever_it_stands():
    def redact(text):
        return text.replace("hunter2", "[REDACTED]")

    text = made(
        said("Use hunter2 never, it leaked."),
        between("I chose hunter2 rather than x, because y."),
        run("deploy --password hunter2", "error: hunter2 refused", failed=True),
        events.TodosChanged((("rotate hunter2", events.TodoState.OPEN),)),
        events.QuestionAnswered("hunter2?", "hunter2"),
        events.TaskStarted("b", "hunter2", "hunter2"),
        events.HandoffRead("HO-1", "# Goal\nhunter2"),
        closing("hunter2"),
        repository=Repository("hunter2", ("?? hunter2",), ("1 hunter2",), "hunter2"),
        redact=redact,
    )
    assert "hunter2" not in text
    assert "REDACTED" in text


def test_an_empty_conversation_still_makes_a_document():
    assert made().startswith("# Session Continuation\n")


@pytest.mark.parametrize("limit", [1_500, 3_000, LIMIT])
def test_the_room_is_kept_and_what_matters_most_is_said_first(limit):
    events = [said(f"Never do thing {n} in src/file_{n}.py, it was done before.") for n in range(300)]
    events += [edit(f"src/file_{n}.py") for n in range(300)]
    text = made(*events, said("How far?"), closing("Half way."), limit=limit)
    assert len(text) <= limit
    assert "> How far?" in text
    assert "> Half way." in text


# --- the document of the second round -------------------------------------------------------------------------------


def test_the_users_messages_are_whole_and_in_order_and_no_block_of_code_is_torn():
    code = "Use this:\n```py\nx = 1\n\ny = 2\n```\nand never inline it."
    text = made(
        said("Add a flag. It is for the importer."), closing("Done."), said(code), closing("Used."), said("ok?")
    )
    wanted = text.partition("### Primary Intent")[2].partition("###")[0]
    assert '- "Add a flag. It is for the importer."' in wanted
    assert "-\n  Use this:\n  ```py\n  x = 1\n  y = 2\n  ```\n  and never inline it." in wanted


@pytest.mark.parametrize(
    "talk", ["ty", "moin", "哈哈", "sweet", "coffee", "Priya says hi", "lol nice one", "danke dir"]
)
def test_small_talk_is_no_rule_and_no_wish(talk):
    text = made(said("Add a flag."), closing("Done."), said(talk), closing("Ok."), said("Now remove src/a.py."))
    for heading in ("Primary Intent", "User-Specified Constraints", "Decisions Made"):
        assert talk not in " ".join(section(text, heading))


@pytest.mark.parametrize(
    "rule",
    [
        "Commits always begin with the ticket, X-17.",
        "La firma de parse() nunca cambia, 12 llamadas dependen de ella.",
        "An rechnung_v2 geht nichts, bis Tobias zurück ist.",
        "hands off infra/, thx",
        "btw f32 only in anything that goes over the wire",
    ],
)
def test_rules_in_other_words_are_rules(rule):
    text = made(said("Add a flag."), closing("Done."), said(rule), closing("Noted."), said("How far are you?"))
    assert f'- "{rule}"' in section(text, "User-Specified Constraints")


def test_words_that_say_no_rule_but_name_something_are_kept_as_wishes():
    text = made(said("Add a flag."), closing("Done."), said("ABC-12 comes after this one"), closing("Ok."), said("go"))
    assert '- "ABC-12 comes after this one"' in [line.removesuffix(" (the latest)") for line in wanted(text)]


def wanted(text):
    return section(text, "Primary Intent")


def test_a_short_answer_stands_with_what_it_chose_from():
    text = made(said("Fix it."), closing("I can wait on a WaitGroup, or poll the queue."), said("wg"), closing("Done."))
    assert wanted(text)[1].startswith('- "wg" (answering: I can wait on a WaitGroup, or poll the queue.)')


def test_words_with_a_yes_or_a_no_name_the_call():
    text = made(
        said("Fix it."),
        events.UserSaid("not the volume", interrupting=True, about_call="docker compose down -v", refusing=True),
        events.UserSaid("small steps", interrupting=True, about_call="the plan"),
    )
    assert '- "not the volume" (said when refusing `docker compose down -v`)' in wanted(text)
    assert '- "small steps" (said when approving the plan)' in [
        message.removesuffix(" (the latest)") for message in wanted(text)
    ]


def test_a_plan_stands_as_it_ended():
    old, new = events.PlanDecided("# A\n1. old", approved=False), events.PlanDecided("# B\n1. new", approved=True)
    assert section(made(old, new), "Plan") == ["> # B", "> 1. new"]
    assert section(made(new, old), "Plan") == ["> # B", "> 1. new"]
    assert "Refused by the user, and no other approved since:\n> # A" in made(old)


def test_the_last_report_before_the_last_words_is_quoted_and_no_announcement():
    text = made(
        said("Fix it."),
        closing("It is red: the clock is frozen.\n\nRemaining:\n\n1. Inject a clock\n2. Run it again"),
        said("ok do that"),
        between("Let me take a look."),
    )
    quote = section(text, "Direct Quote")
    assert quote[:2] == ["**Assistant, before that:**", "> It is red: the clock is frozen."]
    assert quote[-2:] == ["**User, last words:**", "> ok do that"]
    assert section(text, "Next Step")[1] == "- Announced before them: Remaining: 1. Inject a clock 2. Run it again"


@pytest.mark.parametrize(
    ("failed", "passed"),
    [
        ("alembic upgrade head", "docker compose restart db && sleep 3 && alembic upgrade head"),
        ("pytest tests/a.py::test_x -x --runxfail", "pytest tests/a.py -q"),
        ("cd api && make test", "make test 2>&1 | tail -5"),
        ("pytest tests/a.py", "pytest -q"),
        ("npx vitest run axis", "vitest run axis"),
        ("go test ./q -count 50", "go test ./q -count 1"),
    ],
)
def test_a_failure_is_settled_by_the_same_program_on_the_same_things(failed, passed):
    text = made(run(failed, "error: x", failed=True), edit("a"), run(passed))
    assert section(text, "Errors and Resolutions")[0].startswith("- fixed, now passes: ")


@pytest.mark.parametrize(
    ("failed", "passed"),
    [
        ("pytest tests/a.py", "pytest tests/b.py"),
        ("pytest tests/a.py", "pytest tests/a.py -k other"),
        ("make test", "make"),
        ("mvn package", "mvn -DskipTests package"),
        ("go test ./...", "go test ./q"),
        ("npm run build", "npm run lint"),
    ],
)
def test_a_failure_is_not_settled_by_less(failed, passed):
    text = made(run(failed, "error: x", failed=True), edit("a"), run(passed))
    assert "fixed" not in "".join(section(text, "Errors and Resolutions"))


def test_what_was_said_before_and_after_a_repair_is_kept():
    text = made(
        run("make", "VersionError: 3 is less than 4", failed=True),
        between("Somebody took version 4 on main, so ours is 5."),
        edit("schema.ts"),
        run("make"),
        closing("It opens again."),
    )
    (line,) = section(text, "Errors and Resolutions")
    assert line.endswith(" — Somebody took version 4 on main, so ours is 5. — It opens again.")


def test_what_passed_last_is_told_as_the_way_to_verify():
    text = made(
        run("cd api && pytest -q | tail -3"), run("ls"), run("git checkout a_test.py"), run("./run.sh"), edit("a")
    )
    assert section(text, "How to Verify") == ["- `pytest -q`"]
    assert section(made(run("pytest -q"), run("pytest -q", "x", failed=True)), "How to Verify") == ["None"]


@pytest.mark.parametrize("command", ["cd x && sm handoff --auto", "SM=1 sm handoff d.md", "cd x; /opt/bin/sm handoff"])
def test_our_own_call_is_not_shown_as_interrupted(command):
    assert section(made(events.CallInterrupted(command)), "What Was Being Worked On") == ["None"]
    assert "sm handoff" in made(events.CallInterrupted("grep -rn 'sm handoff' docs"))


def test_the_words_to_a_forks_parent_are_no_wishes_of_this_conversation():  # C16
    text = made(said("Port it to Rust."), closing("Ported."), events.Forked(), said("Write the changelog only."))
    assert wanted(text) == ['- "Write the changelog only."']
    assert section(text, "From the Conversation It Was Forked From") == ['- "Port it to Rust."']
    assert text.count("Port it to Rust.") == 1
    assert "Ported." not in text


def test_answers_with_notes_and_what_the_user_ran():
    text = made(
        events.QuestionAnswered("How?", "Merge fields", "but status never merges"),
        events.UserRanCommand("gh pr create", "Creating\nhttps://host/pull/881"),
    )
    assert section(text, "Decisions Made") == [
        '- The user chose for "How?": Merge fields (their note: but status never merges)'
    ]
    assert "- The user ran `gh pr create`: https://host/pull/881" in section(text, "What Happened")


@pytest.mark.parametrize(
    "choice",
    [
        "Cards are rows rather than constants in code, so sales can add the next one.",
        "Excel braucht ein BOM. Ich habe es hinter einen Schalter gelegt, damit SAP unverändert bleibt.",
        "Me quedo con un hash y no con la fecha, ya que los relojes difieren.",
    ],
)
def test_choices_with_their_reason_are_decisions(choice):
    assert f"- {choice}" in section(made(said("Go."), closing(choice), said("next")), "Decisions Made")


def test_habits_of_speech_are_no_decisions():
    habits = [closing(f"I used the helper in `src/{n}.py` instead of a new one.") for n in range(4)]
    passive = closing("The default of 12 was decided long ago by the wet lab and is not part of this.")
    assert section(made(said("Go."), *habits, passive, said("next")), "Decisions Made") == ["None"]


def test_resume_point_first_and_none_where_there_is_nothing():
    text = made(said("Add a flag."))
    order = ["Direct Quote", "Primary Intent", "User-Specified Constraints", "Decisions Made", "Errors and Resolutions"]
    order += ["Code Changes", "Current Git Status", "How to Verify", "Todo List State"]
    places = [text.index(f"### {heading}\n") for heading in order]
    assert places == sorted(places)
    assert section(text, "Patterns Being Followed") == section(text, "Code Changes") == ["None"]
