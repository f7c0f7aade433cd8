"""The types of what is sent to Codex's app-server and read of it, against the schema of the installed client."""

import json
import runpy
from types import SimpleNamespace

import pytest

from tests.e2e.rig import ROOT

pytestmark = [pytest.mark.e2e]


@pytest.fixture(scope="module")
def script():
    return SimpleNamespace(**runpy.run_path(str(ROOT / "scripts" / "codex_schema.py")))


@pytest.fixture(scope="module")
def told(script, tmp_path_factory):
    """What the client has written, as a directory."""
    directory = tmp_path_factory.mktemp("schema")
    script.write_schema(directory)
    return directory


@pytest.fixture
def generated(script, told, tmp_path):
    """The module for a client whose schema was changed."""

    def made(change):
        schema = json.loads((told / script.FILE).read_text())
        change(schema["definitions"])
        (tmp_path / script.FILE).write_text(json.dumps(schema))
        return script.generated(tmp_path, "0.171.0")

    return made


def unchanged(_):
    pass


def test_the_types_are_those_of_the_installed_client(script):
    assert script.PRODUCT.read_text() == script.written()


@pytest.mark.parametrize(
    ("kind", "member"), [("Turn", "status"), ("TurnStartParams", "input"), ("ThreadGoal", "tokenBudget")]
)
def test_a_member_that_is_used_and_gone_is_named(script, generated, kind, member):
    with pytest.raises(script.UnknownError, match=f"{kind} has no member {member}"):
        generated(lambda types: types["v2"][kind]["properties"].pop(member))


def test_a_method_that_is_used_and_gone_is_named(script, generated):
    def renamed(types):
        types["ServerNotification"]["oneOf"] = types["ServerNotification"]["oneOf"][:1]

    with pytest.raises(script.UnknownError, match="ServerNotification has no method"):
        generated(renamed)


def test_a_kind_of_item_that_is_read_and_gone_is_named(script, generated):
    def without_patches(types):
        items = types["v2"]["ThreadItem"]["oneOf"]
        items[:] = [item for item in items if item["properties"]["type"]["enum"] != ["fileChange"]]

    with pytest.raises(script.UnknownError, match="ThreadItem has no type fileChange"):
        generated(without_patches)


@pytest.mark.parametrize(
    "kind", [{"type": "integer"}, {"type": ["string", "null"]}, {"enum": ["done"], "type": "string"}]
)
def test_another_type_of_a_member_that_is_used_is_a_difference(generated, kind):
    same = generated(unchanged)
    changed = generated(lambda types: types["v2"]["Turn"]["properties"].update(status=kind))
    assert same != changed


def test_what_is_not_used_makes_no_difference(generated):
    def changed(types):
        types["v2"]["Turn"]["properties"].update(added={"type": "string"}, durationMs={"type": "string"})

    assert generated(changed) == generated(unchanged)
