"""The port `TranscriptEvidence`, for each provider: what a transcript shows of prompts, turns, limits and words."""

import pytest

from sm.core.model.cost import TokenCount
from sm.core.model.message import digest
from sm.core.model.usage_limit import RESUME_WORDS
from sm.providers.claude.evidence import ClaudeTranscripts
from sm.providers.codex.evidence import CodexTranscripts
from tests.fakes.conversation import Conversation
from tests.fakes.rollout import START, THREAD, Rollout

IDENTITY = THREAD
MARK = "(message m-1)"


class ClaudeWriter:
    source = ClaudeTranscripts()
    place = f"projects/-srv-app/{IDENTITY}.jsonl"
    limit = "You've hit your 5-hour limit"
    full = "Prompt is too long"

    def __init__(self):
        self.talk = Conversation()

    @property
    def data(self):
        return b"".join(self.talk.lines)

    def prompt(self, text):
        self.talk.person(text)

    def reply(self, text, tokens=100):
        usage = {"input_tokens": tokens, "output_tokens": 5}
        message = {"id": f"m{self.talk.number}", "model": "model-x", "usage": usage, "stop_reason": "end_turn"}
        self.talk.record("assistant", message={**message, "content": [{"type": "text", "text": text}]})

    def ran(self, command, output):
        self.talk.ran(command, output)

    def edited(self, path):
        self.talk.edited(path)

    def hook(self, text):
        self.talk.hook("PostToolUse", text)

    def interrupted(self):
        self.talk.client("[Request interrupted by user]")

    def refused(self, words):
        message = {"id": "e", "model": "<synthetic>", "content": [{"type": "text", "text": words}]}
        self.talk.record("assistant", isApiErrorMessage=True, message=message)


class CodexWriter:
    source = CodexTranscripts()
    place = f"sessions/2026/05/28/rollout-2026-05-28T20-26-40-{IDENTITY}.jsonl"
    limit = "You’ve hit your usage limit. Try again later."
    full = "Codex ran out of room in the model's context window."

    def __init__(self):
        self.talk = Rollout(IDENTITY)

    @property
    def data(self):
        return self.talk.data

    def prompt(self, text):
        self.talk.started("model-x")
        self.talk.prompt(text)

    def reply(self, text, tokens=100):
        self.talk.said(text)
        self.talk.used(tokens, 5)
        self.talk.counted(tokens)
        self.talk.completed(text)

    def ran(self, command, output):
        self.talk.ran(command, output)

    def edited(self, path):
        self.talk.patched({f"/srv/app/{path}": {"type": "update", "unified_diff": "@@", "move_path": None}})

    def hook(self, text):
        self.talk.hook(text)

    def interrupted(self):
        self.talk.aborted()

    def refused(self, words):
        self.talk.failed(words, "context_window_exceeded" if words == self.full else "usage_limit_exceeded")


@pytest.fixture(params=[ClaudeWriter, CodexWriter], ids=["claude", "codex"])
def talk(request):
    writer = request.param()
    writer.prompt("Build it")
    writer.reply("Done")
    return writer


@pytest.fixture
def save(talk, tmp_path):
    def saved():
        path = tmp_path / talk.place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(talk.data)
        return str(path)

    return saved


def test_a_prompt_was_submitted_once_it_is_in_the_transcript(talk, save):
    position = len(talk.data)
    assert talk.source.submitted(save(), digest("Test it"), 0) is None
    talk.prompt(" Test it\n")
    assert digest(talk.source.submitted(save(), digest("Test it"), position)) == digest("Test it")
    assert talk.source.submitted(save(), digest("Test it"), len(talk.data)) is None


def test_a_mark_is_shown_by_a_hook_and_by_a_prompt_and_by_no_output(talk, save):
    talk.prompt("Look")
    talk.ran("sm inbox", MARK)
    assert talk.source.shown(save(), {MARK: 0}) == frozenset()
    position = len(talk.data)
    talk.hook(f"x {MARK}")
    assert talk.source.shown(save(), {MARK: position}) == {MARK}
    position = len(talk.data)
    talk.prompt(f"y {MARK}")
    assert talk.source.shown(save(), {MARK: position, "m-2": 0}) == {MARK}
    assert talk.source.shown(save(), {MARK: len(talk.data)}) == frozenset()


def test_a_turn_is_finished_when_it_ended_by_itself(talk, save):
    assert talk.source.finished(save())
    talk.prompt("Test it")
    assert not talk.source.finished(save())
    talk.interrupted()
    assert not talk.source.finished(save())


def test_a_limit_is_met_until_the_model_replies(talk, save):
    assert (talk.source.answered(save()), talk.source.usage_limit(save(), START)) == (True, None)
    talk.prompt("Test it")
    talk.refused(talk.limit)
    assert not talk.source.answered(save())
    assert not talk.source.finished(save())
    assert talk.source.usage_limit(save(), START) is not None
    assert talk.source.refusal(save()) is None
    talk.prompt("Test it again")
    talk.reply("Tested")
    assert (talk.source.answered(save()), talk.source.usage_limit(save(), START)) == (True, None)


def test_words_of_a_limit_by_the_agent_are_none(talk, save):
    talk.prompt("What did you see?")
    talk.reply(talk.limit)
    assert (talk.source.answered(save()), talk.source.usage_limit(save(), START)) == (True, None)


def test_a_full_context_is_refused_until_the_model_replies(talk, save):
    talk.prompt("Test it")
    talk.refused(talk.full)
    assert talk.source.refusal(save()) == talk.full
    assert talk.source.usage_limit(save(), START) is None
    talk.prompt("Test it again")
    talk.reply("Tested")
    assert talk.source.refusal(save()) is None


def test_no_wait_was_cancelled_where_none_was(talk, save):
    assert not talk.source.wait_cancelled(save())


def test_a_conversation_with_a_reply_can_be_resumed_and_one_that_is_not_there_cannot(talk, save, tmp_path):
    assert talk.source.resumable(save())
    assert not talk.source.resumable(str(tmp_path / "none.jsonl"))
    (tmp_path / "odd.jsonl").write_bytes(b"{}\n")
    assert not talk.source.resumable(str(tmp_path / "odd.jsonl"))


def test_a_transcript_is_found_by_its_conversation(talk, save, tmp_path):
    assert talk.source.found_transcript(str(tmp_path), IDENTITY) is None
    path = save()
    assert talk.source.found_transcript(str(tmp_path), IDENTITY) == path


def test_each_reply_is_used_once_by_its_model(talk, save):
    usage = talk.source.usage(save())
    talk.prompt("Test it")
    talk.reply("Tested", tokens=250)
    save()
    assert usage.read() == usage.read() == {"model-x": TokenCount(input=350, output=10, requests=2)}


def test_the_task_is_the_newest_prompt_that_is_more_than_to_continue(talk, save):
    talk.prompt(f"{RESUME_WORDS}, and do not repeat what is done already.")
    talk.hook("Deploy it")
    talk.ran("cat notes", "Delete it")
    assert talk.source.task(save()) == "Build it"
    talk.prompt("Test it")
    assert talk.source.task(save()) == "Test it"


def test_a_changed_file_is_progress_and_talk_is_none(talk, save):
    assert not talk.source.shows_progress(save())
    talk.edited("a.py")
    assert talk.source.shows_progress(save())


def test_utterances_are_what_was_said_and_run(talk):
    talk.ran("make test", "1 failed")
    said = "\n".join(found.text for found in map(talk.source.utterance, talk.data.splitlines(keepends=True)) if found)
    assert [said.count(words) for words in ("Build it", "Done", "make test", "1 failed")] == [1, 1, 1, 1]
    assert talk.source.utterance(b"no record\n") is None


@pytest.mark.parametrize("data", [b"", b"\n\n", b"[1]\n", b"\xff\xfe\n", b"[" * 100_000 + b"\n", b'{"type": '])
def test_whatever_is_in_the_file_nothing_is_found_and_nothing_raised(talk, tmp_path, data):
    path = tmp_path / "odd.jsonl"
    path.write_bytes(data)
    source, name = talk.source, str(path)
    assert source.submitted(name, digest("x"), 0) is None
    assert source.shown(name, {MARK: 0}) == frozenset()
    found = source.finished(name), source.answered(name), source.wait_cancelled(name), source.resumable(name)
    assert found == (False, False, False, False)
    assert (source.usage_limit(name, START), source.refusal(name), source.task(name)) == (None, None, "")
    assert (source.usage(name).read(), source.shows_progress(name)) == ({}, False)
