"""`sm config show` and `sm trust`."""

from sm.settings import KEYS


async def test_every_setting_is_shown_with_its_value(bare):
    (bare.root / "config.toml").write_text('[handoff]\ninstructions = "mind the é"\n')
    lines = (await bare.run("config", "show")).out.splitlines()
    assert [line.partition(" = ")[0] for line in lines] == list(KEYS)
    assert 'handoff.instructions = "mind the é"' in lines
    assert "context_monitor.max_tokens = none" in lines


async def test_the_source_of_a_value_is_told(bare):
    (bare.root / "config.toml").write_text("[server]\nport = 7000\n")
    env = {"SM_TMUX_HISTORY_LIMIT": "2000"}
    lines = (await bare.run("config", "show", "--source", env=env)).out.splitlines()
    assert f"server.port = 7000  # {bare.root}/config.toml" in lines
    assert "tmux.history_limit = 2000  # SM_TMUX_HISTORY_LIMIT" in lines
    assert 'hooks.transport = "http"  # default' in lines


async def test_as_json_it_is_one_object_by_key(bare):
    assert (await bare.run("config", "show", "--json")).data["context_monitor.critical_threshold"] == "80%, 200000"
    data = (await bare.run("config", "show", "--source", "--json")).data
    assert data["server.port"] == {"value": 0, "source": "default"}


async def test_of_a_notification_services_url_only_the_kind_is_shown(bare):
    (bare.root / "config.toml").write_text('[notify]\nurls = ["tgram://123:hidden/4", "hidden"]\n')
    shown = [await bare.run("config", "show", *options) for options in ((), ("--json",), ("--source", "--json"))]
    assert 'notify.urls = ["tgram://…", "://…"]' in shown[0].out
    assert [ran.out for ran in shown if "hidden" in ran.out] == []


async def test_a_broken_file_stops_it(bare):
    (bare.root / "config.toml").write_text("[server]\nprt = 1\n")
    ran = await bare.run("config", "show")
    expected = f"Error: {bare.root}/config.toml: unknown key server.prt\nhint: the nearest one is server.port\n"
    assert (ran.code, ran.out, ran.err) == (1, "", expected)
    assert (await bare.run("config", "show", "--json")).error["code"] == "unknown_key"


async def test_a_project_sets_what_it_may_and_the_rest_once_it_is_trusted(bare):
    (bare.root / ".sm").mkdir()
    (bare.root / ".sm/config.toml").write_text("[server]\nport = 7000\n")
    assert (await bare.run("config", "show", "--json")).error["code"] == "config_untrusted"
    ran = await bare.run("trust", ".")
    assert (ran.code, ran.err) == (0, f"trusted with its present content: {bare.root}/.sm/config.toml\n")
    assert (await bare.run("config", "show", "--json")).data["server.port"] == 7000
    (bare.root / ".sm/config.toml").write_text("[server]\nport = 7001\n")
    assert (await bare.run("config", "show", "--json")).error["code"] == "config_untrusted"


async def test_there_is_nothing_to_trust_without_a_file(bare):
    ran = await bare.run("trust", ".")
    assert (ran.code, ran.err.splitlines()) == (
        1,
        [
            "Error: Nothing to trust: . has no .sm/config.toml",
            "hint: give the directory that holds it: sm trust DIR",
        ],
    )


async def test_a_session_may_not_trust_a_project(bare):
    ran = await bare.run("trust", ".", env={"CLAUDE_SESSION_MANAGER_ID": "0123abcd"})
    assert (ran.code, ran.err.splitlines()[0]) == (1, "Error: A session may not trust a project")
