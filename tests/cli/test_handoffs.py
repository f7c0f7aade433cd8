"""`sm handoffs` and `sm resume` as the processes a person calls."""

import asyncio
import json
import os
from pathlib import Path

import pytest

from sm.core import events as ev
from tests.archive.handoffs.test_project_directory import git

GOAL = "# Goal\nG.\n"
NO_PROMPT = (
    "Error: No continuation prompt found at .sm/continue-prompt.md\n"
    "Run /handoff to generate one, or specify a custom path:\n"
    "/sm:resume path/to/custom-prompt.md\n"
)


async def left(desk, name="a"):
    """The id of a handoff whose session has ended."""
    engine = desk.api.engine
    session = await desk.api.new(name)
    file = desk.root / f"{name}.md"
    file.write_text(GOAL)
    os.utime(file, (desk.api.clock.now(), desk.api.clock.now()))
    handoff = await engine.handoffs.request(session, str(file))
    await engine.sessions.actor(session).ask(ev.ClientExited(at=desk.api.clock.now(), signal=9))
    return handoff.id


async def state(desk, handoff):
    return (await desk.api.engine.ports.store.handoff(handoff)).state.value


async def test_nothing_is_said_on_stderr_and_what_there_is_on_stdout(desk):
    ran = await desk.run("handoffs")
    assert (ran.code, ran.out, ran.err) == (0, "", "no handoffs\nhint: an agent makes one with sm handoff FILE\n")
    handoff = await left(desk)
    ran = await desk.run("handoffs")
    assert [line.split()[:2] for line in ran.out.splitlines()] == [["ID", "STATE"], [handoff, "active"]]
    (view,) = (await desk.run("handoffs", "--json")).data
    assert (view["id"], view["state"], view["channel"], view["held_by"]) == (handoff, "active", str(desk.root), None)


async def test_why_a_handoff_is_as_it_is_stands_below_the_table(desk):
    handoff = await left(desk)
    ran = await desk.run("handoffs", env={"COLUMNS": "60"})
    assert ("REASON" in ran.out, ran.err) == (False, f"{handoff}: its session ended before it was picked up\n")


@pytest.mark.parametrize(("channel", "count"), [(".", 1), ("other", 0)])
async def test_a_channel_is_named_or_a_directory_in_it(desk, channel, count):
    await left(desk)
    assert len((await desk.run("handoffs", "--channel", channel, "--json")).data) == count


async def test_active_says_so_by_its_exit_code(desk):
    ran = await desk.run("handoffs", "active")
    assert (ran.code, ran.out) == (1, "")
    handoff = await left(desk)
    ran = await desk.run("handoffs", "active")
    assert (ran.code, ran.out) == (0, f"{handoff}\n")


async def test_show_prints_the_document_alone(desk):
    handoff = await left(desk)
    assert (await desk.run("handoffs", "show", handoff)).out == GOAL
    assert (await desk.run("handoffs", "show", handoff, "--json")).data["document"] == GOAL


@pytest.mark.parametrize("command", ["show", "clear"])
@pytest.mark.parametrize(
    ("identity", "code"),
    [("HO-none", "handoff_unknown"), ("../../../tmp/x", "bad_id"), ("/etc/passwd", "bad_id"), ("x" * 300, "bad_id")],
)
async def test_an_id_of_nothing_is_an_error(desk, command, identity, code):
    ran = await desk.run("handoffs", command, identity, "--json")
    assert (ran.code, ran.error["code"]) == (1, code)


async def test_a_document_that_is_gone_is_an_error(desk):
    handoff = await left(desk)
    (view,) = (await desk.run("handoffs", "--json")).data
    Path(view["copy"]).unlink()
    assert (await desk.run("handoffs", "show", handoff, "--json")).error["code"] == "handoff_gone"


async def test_clear_ends_the_one_named_or_all_that_wait_here(desk):
    first = await left(desk, "a")
    assert (await desk.run("handoffs", "clear", first)).err == f"cleared {first}\n"
    second = await left(desk, "b")
    assert (await desk.run("handoffs", "clear", "--json")).data == {"cleared": [second]}
    assert (await desk.run("handoffs", "clear")).err == "no open handoff in this project\n"
    assert [await state(desk, handoff) for handoff in (first, second)] == ["cleared", "cleared"]
    assert (await desk.run("handoffs", "clear", first, "--json")).error["code"] == "handoff_closed"


async def test_clearing_a_pending_one_takes_it_back_from_its_session(desk):
    session = await desk.api.new("a")
    (desk.root / "h.md").write_text(GOAL)
    handoff = await desk.api.engine.handoffs.request(session, str(desk.root / "h.md"))
    assert (await desk.run("handoffs", "clear", handoff.id)).code == 0
    assert desk.api.engine.sessions.actor(session).session.rotation.phase.value == "cancelled"


async def test_options_of_the_group_before_a_subcommand_are_refused(desk):
    assert (await desk.run("handoffs", "--channel", "x", "active")).code == 2


async def test_resume_starts_a_session_from_what_waits_here(desk):
    handoff = await left(desk)
    session = (await desk.run("resume", "--detach", "--client", "sh")).out.strip()
    view = (await desk.api.call("GET", f"/sessions/{session}"))[1]
    assert (view["handoff"]["id"], view["handoff"]["phase"]) == (handoff, "empty")
    ran = await desk.run("resume", handoff, "--detach", "--client", "sh", "--json")
    assert (ran.code, ran.error["code"], session in ran.error["message"]) == (1, "handoff_taken", True)


async def test_a_prompt_at_the_root_of_the_repository_is_taken_up_from_a_folder_in_it(desk):
    (desk.root / ".git").mkdir()
    (desk.root / ".git/HEAD").write_text("ref: refs/heads/main\n")
    path = desk.root / ".sm" / "continue-prompt.md"
    path.parent.mkdir(exist_ok=True)
    path.write_text(GOAL)
    deep = desk.root / "src" / "deep"
    deep.mkdir(parents=True)
    ran = await desk.run("resume", "--detach", "--client", "sh", "--json", cwd=deep)
    assert ran.data["handoff"]["path"] == str(path)


@pytest.mark.parametrize("name", [".sm/continue-prompt.md", ".ll/ll-continue-prompt.md"])
async def test_where_none_waits_it_starts_from_the_continuation_prompt(desk, name):
    (desk.root / name).parent.mkdir()
    (desk.root / name).write_text(GOAL)
    ran = await desk.run("resume", "--detach", "--client", "sh", "--json")
    (view,) = (await desk.run("handoffs", "--json")).data
    assert (view["id"], view["type"], view["path"]) == (ran.data["handoff"]["id"], "manual", str(desk.root / name))
    assert (view["held_by"], view["holder"]) == (ran.data["id"], f"{ran.data['name']} ({ran.data['id']})")
    assert view["holder"] in (await desk.run("handoffs")).out


async def test_an_old_continuation_prompt_is_warned_of(desk):
    (desk.root / ".sm").mkdir()
    path = desk.root / ".sm" / "continue-prompt.md"
    path.write_text(GOAL)
    os.utime(path, (1.0, 1.0))
    assert "hours ago; it may be out of date" in (await desk.run("resume", "--detach", "--client", "sh")).err


async def test_without_either_it_says_how_to_make_one_in_the_contracts_words(desk):
    ran = await desk.run("resume")
    assert (ran.code, ran.out, ran.err) == (1, "", NO_PROMPT)
    assert json.loads((await desk.run("resume", "--json")).out)["error"]["code"] == "no_prompt"


async def test_whoever_comes_right_after_it_was_taken_is_told_who_has_it(desk):
    await left(desk)
    taken = (await desk.run("resume", "--detach", "--client", "sh", "--json")).data
    (view,) = (await desk.run("handoffs", "--json")).data
    ran = await desk.run("resume", "--client", "sh")
    holder = f"{taken['name']} ({taken['id']})"
    assert (ran.code, ran.err) == (
        1, f"{NO_PROMPT}hint: the newest handoff here, {view['id']}, is with session {holder}\n",
    )  # fmt: skip


async def test_a_document_that_is_a_fifo_keeps_nobody_waiting(desk):
    await left(desk)
    (view,) = (await desk.run("handoffs", "--json")).data
    Path(view["copy"]).unlink()
    os.mkfifo(view["copy"])
    for command in (("handoffs", "show", view["id"]), ("resume", view["id"], "--client", "sh")):
        async with asyncio.timeout(20):
            ran = await desk.run(*command, "--json")
        assert (ran.code, ran.error["code"]) == (1, "handoff_gone")


@pytest.mark.parametrize(("source", "code"), [("nope.md", "file_not_found"), ("HO-none", "handoff_unknown")])
async def test_a_source_that_is_not_there_is_named(desk, source, code):
    ran = await desk.run("resume", source, "--client", "sh", "--json")
    assert (ran.code, ran.error["code"]) == (1, code)
    assert (await desk.run("list", "--json")).data == []


async def test_a_document_of_the_store_may_be_the_file(desk):
    await left(desk)
    (view,) = (await desk.run("handoffs", "--json")).data
    ran = await desk.run("resume", view["copy"], "--detach", "--client", "sh", "--json")
    assert ran.data["handoff"]["id"] != view["id"]
    assert (await desk.run("handoffs", "show", ran.data["handoff"]["id"])).out == GOAL


async def test_inside_a_session_it_is_refused(desk):
    session = await desk.api.new("a")
    assert (await desk.run("resume", session=session, env={"SM_NO_START": "1"})).code == 1


async def test_a_new_session_says_what_waits(desk):
    handoff = await left(desk)
    ran = await desk.run("new", "--detach", "--client", "sh", "--name", "b")
    assert f"this project has an open handoff: sm resume {handoff} starts a session from it" in ran.err


async def test_resume_does_not_follow_a_link_out_of_the_project_by_itself(desk, tmp_path_factory):
    """C43: `.sm/continue-prompt.md` of a clone may lead to any file of the person's."""
    private = tmp_path_factory.mktemp("elsewhere") / "key"
    private.write_text("PRIVATE")
    (desk.root / ".sm").mkdir()
    (desk.root / ".sm/continue-prompt.md").symlink_to(private)
    ran = await desk.run("resume", "--detach", "--client", "sh", "--json")
    assert (ran.code, ran.error["code"], ran.error["hint"]) == (1, "file_unfit", f"sm resume {private}")


async def test_active_names_what_is_open_in_another_worktree_and_counts_only_its_own(desk):
    """C6"""
    main, tree = desk.root / "main", desk.root / "tree"
    main.mkdir()
    git(main, "init", "-q", "-b", "trunk")
    (main / "file").write_text("x")
    git(main, "add", "file")
    git(main, "commit", "-qm", "first")
    git(main, "worktree", "add", "-q", "-b", "topic", str(tree))
    session = await desk.api.new("w", directory=tree)
    (tree / "h.md").write_text("goal")
    handoff = (await desk.api.engine.handoffs.request(session, str(tree / "h.md"))).id
    await desk.api.call("DELETE", f"/sessions/{session}")
    ran = await desk.run("handoffs", "active", cwd=main)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err == f"{handoff} is open in {tree} (branch topic)\nhint: sm resume {handoff}\n"
    ran = await desk.run("handoffs", "active", cwd=tree)
    assert (ran.code, ran.out, ran.err) == (0, f"{handoff}\n", "")
    ran = await desk.run("resume", "--client", "sh", "--json", cwd=main)
    assert (ran.code, ran.error["hint"]) == (1, f"an open handoff of {tree} (branch topic): sm resume {handoff}")
